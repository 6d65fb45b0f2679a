#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/console.hpp"
#include "cli/offline_workspace.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/base/text.hpp"
#include "model/machine/odd_levels.hpp"
#include "model/network/limits.hpp"
#include "planner/planner.hpp"
#include "session/training.hpp"
#include "tuner/measuring.hpp"

namespace stratplan {

namespace {

bool is_positive(const std::string& text, std::int64_t largest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 && value <= largest;
}

}  // namespace

CLI::Validator positive() {
  return {[](const std::string& text) {
            return is_positive(text, std::numeric_limits<std::int64_t>::max())
                       ? std::string()
                       : "expected a positive integer, found " + text;
          },
          "", "positive"};
}

CLI::Validator extent() {
  return {[](const std::string& text) {
            return is_positive(text, largest_extent)
                       ? std::string()
                       : fmt::format("expected an integer from 1 to {}, found {}", largest_extent,
                                     text);
          },
          "", "extent"};
}

namespace {

/// Replaces CLI11's ranges, which accept text that is not a number and print their largest double.
CLI::Validator number(const char* expected, bool (*good)(double)) {
  return {[=](const std::string& text) {
            double value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = error == std::errc{} && end == text.data() + text.size();
            return whole && good(value) ? std::string()
                                        : fmt::format("expected {}, found {}", expected, text);
          },
          "", "number"};
}

}  // namespace

CLI::Validator statistics_set() {
  return {[](const std::string& text) {
            return text == "all" || text == "local" || is_positive(text, largest_extent)
                       ? std::string()
                       : fmt::format("expected all, local or an integer from 1 to {}, found {}",
                                     largest_extent, text);
          },
          "", "statistics"};
}

CLI::Validator non_negative() {
  return number("a number of at least 0",
                [](double value) { return value >= 0 && std::isfinite(value); });
}

CLI::Validator below_one() {
  return number("a number of at least 0 and below 1",
                [](double value) { return value >= 0 && value < 1; });
}

CLI::Option* NetworkOptions::add(CLI::App& command) {
  auto* network =
      command
          .add_option("NETWORK", source,
                      "network file, ONNX model, or the name of a shipped network (resnet50, ...)")
          ->required();
  command
      .add_option("-b,--batch", batch, "samples per step over all ranks; default: as in the file")
      ->check(extent());
  command.add_option("--input-size", input_size,
                     "extents of the network's input, H,W or D,H,W; default: as in the file");
  command
      .add_option(
          "--statistics", statistics,
          "samples over which batch normalization takes its statistics: a number, all, or "
          "local (each rank's own, as in PyTorch's DistributedDataParallel); default: as in "
          "the file")
      ->check(statistics_set());
  command
      .add_option("--freeze", freeze,
                  "freeze the parameters with this name. In the name, * stands for any characters. "
                  "Frozen parameters have no gradient. The option may be given again")
      ->allow_extra_args(false);
  optimizer.add(command);
  return network;
}

NetworkOverrides NetworkOptions::overrides() const {
  NetworkOverrides result;
  if (batch > 0) result.batch = batch;
  result.training = optimizer.training();
  if (!input_size.empty()) result.input_size = parse_extents(input_size);
  result.statistics = statistics;
  result.freeze = freeze;
  return result;
}

std::vector<std::string> NetworkOptions::words() const {
  std::vector<std::string> words{source};
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--batch", batch > 0 ? std::to_string(batch) : "");
  add("--input-size", input_size);
  add("--statistics", statistics);
  for (const std::string& pattern : freeze) add("--freeze", pattern);
  for (const std::string& word : optimizer.words()) words.push_back(word);
  return words;
}

Network NetworkOptions::read(bool accepts_opaque) const {
  NetworkOverrides wanted = overrides();
  wanted.accepts_opaque = accepts_opaque;
  Network network = read_network(source, wanted);
  for (const std::string& decision : network.notes) note(fmt::format("{}: {}", source, decision));
  return network;
}

void add_ranks(CLI::App& command, int& ranks, bool required) {
  // No machine has more ranks today, and with this number, ranks times elements does not overflow.
  constexpr int largest = 1 << 16;
  auto* option = command.add_option("-n,--ranks", ranks, "number of ranks (processes)")
                     ->check(positive())
                     ->check(CLI::Range(1, largest));
  if (required) option->required();
}

namespace {

constexpr const char* machine_text =
    "machine file, name of a shipped machine (see stratplan machines), or local for this machine "
    "as measured. With the suffix :tf32, :fp16 or :bf16, for example in lassen:fp16, products of "
    "fp32 tensors are predicted in that type. Unlike plan --precision, the suffix does not change "
    "what is stored or run";

}  // namespace

void add_machine(CLI::App& command, std::string& machine) {
  command.add_option("-m,--machine", machine, machine_text)->capture_default_str();
}

void add_plan_machine(CLI::App& command, std::string& machine) {
  command.add_option("-m,--machine", machine,
                     fmt::format("{}. Default: the shipped machine that the plan was made for, "
                                 "else local",
                                 machine_text));
}

void add_software(CLI::App& command, std::string& software, bool reads_plan) {
  command.add_option(
      "--software", software,
      fmt::format("what runs the plan: {}, or a file. Decides what the host, kernels, "
                  "sums and memory cost. Default: {}",
                  fmt::join(shipped_software(), ", "),
                  reads_plan ? "the plan's software" : "stratplan"));
}

void add_ideal(CLI::App& command, bool& ideal) {
  command.add_flag(
      "--ideal", ideal,
      "machines with published rates: predict without what slows large jobs down. All "
      "ranks are equally fast, kernels beside sums take no longer than alone, and large "
      "networks lose no bandwidth");
}

Software software_of(const Plan& plan) {
  if (!is_shipped_software(plan.software))
    throw InputError("the plan", "/software",
                     fmt::format("expected one of {}, found \"{}\"; for a software of your own, "
                                 "--software names its file",
                                 fmt::join(shipped_software(), ", "), plan.software));
  return read_software(plan.software);
}

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print nothing but JSON on standard output");
}

void add_memory(CLI::App& command, std::string& memory) {
  command.add_option("--memory", memory,
                     "memory limit per rank, for example 16GiB; default: the device memory that "
                     "the machine states");
}

Bytes parse_bytes(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size()
                                                                 : unit.find_first_not_of(' '));
  if (error == std::errc{} && unit.empty())
    throw UsageError(fmt::format("{} has no unit: write {}GiB, for example, or {}B for bytes", text,
                                 text, text));
  if (unit == "KB") unit = "kB";
  const auto found = std::ranges::find(byte_units, unit, &ByteUnit::name);
  const double bytes = found == byte_units.end() ? 0 : number * static_cast<double>(found->size);
  if (error != std::errc{} || !(bytes >= 1) || bytes > 9e18) {
    throw UsageError(
        fmt::format("'{}' is no amount of memory; write for example 16GiB or 500MB", text));
  }
  return {static_cast<std::int64_t>(std::llround(bytes))};
}

Seconds parse_duration(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
      {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto found = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  if (error != std::errc{} || found == units.end() || !(number > 0) || number > 1e6)
    throw UsageError(fmt::format("'{}' is no duration; write for example 3min, 90s or 1.5h", text));
  return {number * found->second};
}

std::vector<std::int64_t> parse_extents(const std::string& text) {
  const auto extents = extents_of(text);
  if (!extents)
    throw UsageError(
        fmt::format("'{}' is no input size; write H,W or D,H,W, for example 128,128, each from 1 "
                    "to {}",
                    text, largest_extent));
  if (extents->size() < 2 || extents->size() > 3)
    throw UsageError(fmt::format("'{}' has {} extents; write H,W or D,H,W", text, extents->size()));
  return *extents;
}

void check_output(const std::string& file) {
  if (!file.empty()) check_writable(file);
}

void check_cache() {
  make_folders(cache_folder());
  check_writable(cache_folder() / "machine.json");
}

namespace {

bool is_local(const std::string& source) { return without_arithmetic(source) == "local"; }

bool is_shipped(const std::string& source) {
  return std::ranges::count(shipped_machines(), without_arithmetic(source)) > 0;
}

std::string ranks_text(const std::vector<int>& counts) {
  return fmt::format("{} rank{}", fmt::join(counts, ", "), counts == std::vector{1} ? "" : "s");
}

}  // namespace

MachineProfile read_machine_for(const std::string& source, int ranks, const Execution& execution,
                                const Software& software) {
  MachineProfile machine = read_machine(source, ranks, execution.threads_per_rank, software);
  const DataType stored = execution.precision.activations;
  const Math math = stored == DataType::F16 ? Math::Fp16 : Math::Bf16;
  if (is_narrow(stored) && machine.device.units > 0 &&
      machine.device.math_flops_per_s[static_cast<std::size_t>(math)] == 0)
    throw InputError(
        source, "",
        fmt::format("no {} rate is stated for the device of {}", name_of(math), machine.name));
  machine.unmeasured_workspace = is_local(source)
                                     ? workspace_here(default_backend(), execution.threads_per_rank)
                                     : workspace_there(machine.device);
  return machine;
}

std::vector<MachineProfile> read_machines_aloud(const std::string& source,
                                                const std::vector<int>& ranks,
                                                const Execution& execution,
                                                const Software& software) {
  std::vector<MachineProfile> machines;
  std::vector<int> unmeasured;
  for (const int count : ranks) {
    // Only measurements of this machine depend on the number of ranks.
    machines.push_back(machines.empty() || is_local(source)
                           ? read_machine_for(source, count, execution, software)
                           : machines.front());
    if (is_local(source) && machines.back().measured_ranks == 0) unmeasured.push_back(count);
  }
  const MachineProfile& last = machines.back();
  if (!unmeasured.empty()) {
    note(
        fmt::format("this machine has not been measured with {}: predictions are rough estimates; "
                    "to measure, run stratplan profile or autotune",
                    ranks.size() == 1 ? "this number of ranks" : ranks_text(unmeasured)));
  } else if (last.assumed) {
    const bool partly = !last.kernels.empty() || !last.collectives.empty() ||
                        !last.one_way.points.empty() || !last.both_ways.points.empty();
    note(fmt::format("predictions are estimates from {}published rates of {}{}",
                     partly ? "measured tables and " : "", last.name,
                     last.unmeasured_workspace ? "" : ", and count no scratch memory of kernels"));
  }
  if (is_local(source) || is_shipped(source)) return machines;
  for (const std::string& odd : odd_levels(last)) note(fmt::format("{}: {}", source, odd));
  if (ranks.back() > 1 && !last.hidden)
    note(
        fmt::format("{}: the key \"hidden\" is missing, so plans overlap no sum of gradients with "
                    "kernels; state the share of a sum that kernels can hide",
                    source));
  return machines;
}

MachineProfile read_machine_aloud(const std::string& source, int ranks, const Execution& execution,
                                  const Software& software) {
  return read_machines_aloud(source, {ranks}, execution, software).front();
}

MachineProfile read_machine_aloud(const std::string& stated, Plan& plan,
                                  const std::string& wanted) {
  const Software software = wanted.empty() ? software_of(plan) : read_software(wanted);
  if (software.name != plan.software) {
    DataType& sums = plan.execution.precision.gradient_sums;
    if (is_shipped_software(plan.software) && read_software(plan.software).gradient_sums == sums)
      sums = DataType::F32;
    plan.execution = as_run_by(software, plan.execution, is_narrow(sums));
  }
  plan.software = software.name;
  const std::string source = !stated.empty()                 ? stated
                             : is_shipped(plan.machine_name) ? plan.machine_name
                                                             : "local";
  check_decompositions(software, plan);
  MachineProfile machine = read_machine_aloud(source, plan.ranks, plan.execution, software);
  if (stated.empty() && !is_local(source) && !plan.machine_fingerprint.empty() &&
      plan.machine_fingerprint != machine.fingerprint())
    note(fmt::format("this plan was made for another {} than the shipped one; --machine chooses it",
                     plan.machine_name));
  // Estimates of this machine are named "local".
  const auto named = [](const std::string& name) {
    return name == "local" ? this_machine() : name;
  };
  if (!plan.machine_name.empty() && named(plan.machine_name) != named(machine.full_name()))
    note(fmt::format(
        "this plan was made for {}, and is priced for {}; --machine chooses another machine",
        plan.machine_name, machine.full_name()));
  return machine;
}

}  // namespace stratplan
