// stratplan scale: strong and weak scaling of the best plan and of each baseline.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/execution_options.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/sorted_range.hpp"
#include "model/base/system/shell.hpp"
#include "report/page/page.hpp"
#include "report/scaling/scaling_figures.hpp"

namespace stratplan {
namespace {

struct ScaleOptions {
  NetworkOptions network;
  ExecutionOptions execution;
  std::string ranks;
  std::string machine = "local";
  std::string software = "stratplan";
  bool ideal = false;
  std::string input;
  std::string memory;
  double samples_per_rank = 0;
  bool per_layer = false;
  std::vector<std::string> outputs;
  bool json = false;
};

int parse_rank(const std::string& text) {
  constexpr int largest = 1 << 16;
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc{} || end != text.data() + text.size() || ranks < 1 || ranks > largest)
    throw UsageError(
        fmt::format("--ranks: expected numbers from 1 to {}, as in 1,2,4 or 1..64, found \"{}\"",
                    largest, text));
  return ranks;
}

/// Parses a list such as "1,2,6", doublings such as "2..16", or both, as in "1,2..16". Returns the
/// numbers ascending, each once. Throws UsageError.
std::vector<int> parse_ranks(const std::string& list) {
  std::vector<int> ranks;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t dots = item.find("..");
    const int first = parse_rank(item.substr(0, dots)),
              last = dots == std::string::npos ? first : parse_rank(item.substr(dots + 2));
    for (int count = first; count <= last; count *= 2) ranks.push_back(count);
  }
  make_sorted_set(ranks);
  if (ranks.empty()) throw UsageError(fmt::format("--ranks: \"{}\" is no number of ranks", list));
  return ranks;
}

/// Whether the file's ending names a format that contents_of() can write.
bool known_ending(const std::string& file) {
  return file.ends_with(".csv") || file.ends_with(".svg") || file.ends_with(".json") ||
         file.ends_with(".html");
}

/// Returns the request of the command line. `machines` holds one machine per number of ranks, in
/// ascending order of ranks.
ScalingRequest request_of(const ScaleOptions& options,
                          const std::vector<MachineProfile>& machines) {
  ScalingRequest request;
  request.source = options.network.source;
  request.overrides = options.network.overrides();
  request.ranks = parse_ranks(options.ranks);
  if (!options.memory.empty()) request.memory_limit = parse_bytes(options.memory);
  request.per_layer = options.per_layer;
  request.free =
      free_under(machines.front().software, options.execution.free(options.network.optimizer));
  request.execution = [&options, &software = machines.front().software](const Network& network) {
    return as_run_by(software, options.execution.execution(network),
                     options.execution.precision.gradient_sums.has_value());
  };
  request.machine = [&machines, ranks = request.ranks](int count) {
    return machines[static_cast<std::size_t>(std::ranges::find(ranks, count) - ranks.begin())];
  };
  return request;
}

std::vector<Scaling> scalings_of(const ScaleOptions& options, ScalingRequest request) {
  std::vector<Scaling> scalings;
  const bool weak = options.samples_per_rank > 0;
  if (!weak || options.network.batch > 0) scalings.push_back(scale(request));
  if (weak) {
    request.samples_per_rank = options.samples_per_rank;
    scalings.push_back(scale(request));
  }
  return scalings;
}

std::string contents_of(const std::string& file, const std::vector<Scaling>& scalings,
                        const Json& document, const CommandLine& command_line) {
  if (file.ends_with(".html"))
    return make_page({.plans = {},
                      .scalings = scalings,
                      .remarks = {},
                      .commands = {shell_line(command_line)},
                      .provenance = make_provenance(command_line)})
        .html;
  if (file.ends_with(".csv")) return to_csv(scalings);
  if (file.ends_with(".json")) return document.dump(1) + "\n";
  std::vector<Chart> charts;
  for (const Scaling& scaling : scalings)
    std::ranges::move(charts_of(scaling), std::back_inserter(charts));
  return to_svg(charts);
}

void print(const std::vector<Scaling>& scalings, const std::string& software, bool per_layer) {
  for (const Scaling& scaling : scalings) {
    fmt::print("{} scaling of {} on {}, run by {}\n\n{}\n{}\n{}\n\n",
               scaling.weak ? "weak" : "strong", scaling.network, scaling.machine, software,
               to_text(scaling_table(scaling)), scaling_notes(scaling), knee_text(scaling));
    if (const std::string notes = statistics_notes(scaling); !notes.empty())
      fmt::print("{}\n", notes);
    if (per_layer)
      fmt::print("layers of the best plan, with their efficiency on the most ranks\n\n{}\n",
                 to_text(layer_scaling_table(scaling)));
  }
}

void scale_and_print(const ScaleOptions& options, const CommandLine& command_line) {
  parse_ranks(options.ranks);
  for (const std::string& file : options.outputs) {
    if (!known_ending(file))
      throw UsageError(fmt::format("--output: {} must end in .csv, .svg, .html or .json", file));
    check_output(file);
  }
  options.network.read();  // prints the reader's notes and errors once, before any planning
  std::vector<MachineProfile> machines = read_machines_aloud(
      options.machine, parse_ranks(options.ranks),
      {.precision = options.execution.precision.precision()}, read_software(options.software));
  for (MachineProfile& machine : machines) {
    if (options.ideal) machine = with_ideal_scaling(std::move(machine));
    set_input(machine, options.input);
  }
  const std::vector<Scaling> scalings = scalings_of(options, request_of(options, machines));
  Json document = {{"software", machines.front().software.name}, {"scalings", Json::array()}};
  for (const Scaling& scaling : scalings) document["scalings"].push_back(to_json(scaling));
  for (const std::string& file : options.outputs)
    write_file_atomically(file, contents_of(file, scalings, document, command_line));
  if (options.json) {
    fmt::print("{}\n", document.dump());
  } else {
    print(scalings, machines.front().software.name, options.per_layer);
  }
}

constexpr const char* scale_footer =
    R"(Strong scaling keeps the batch of -b, or of the file, on any number of ranks.
Weak scaling keeps the samples per rank. With both -b and --weak, both kinds are printed.
Efficiency is samples per second and rank, divided by those of the best plan on the fewest ranks.
Examples:
  stratplan scale resnet50 -m lassen -n 4..1024 --weak 32 -o weak.svg -o weak.csv
  stratplan scale mesh2k -m lassen -b 1 -n 2,4,8,16 --per-layer
  stratplan scale mesh2k -m lassen -n 4..2048 --weak 0.5 --json)";

}  // namespace

void add_scale(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<ScaleOptions>();
  CLI::App* command = program.add_subcommand(
      "scale",
      "Predict how the best plan and the baselines scale, strong and weak; measures nothing");
  options->network.add(*command);
  command
      ->add_option(
          "-n,--ranks", options->ranks,
          "numbers of ranks to plan for: a list such as 1,2,6, doublings such as 1..64, or both")
      ->required();
  add_machine(*command, options->machine);
  add_software(*command, options->software, false);
  add_ideal(*command, options->ideal);
  add_input(*command, options->input);
  add_memory(*command, options->memory);
  options->execution.add(*command);
  command
      ->add_option(
          "--weak", options->samples_per_rank,
          "weak scaling with this number of samples per rank; below 1 if ranks share a sample")
      ->check(CLI::PositiveNumber);
  command->add_flag("--per-layer", options->per_layer,
                    "also print time and efficiency of each layer of the best plan");
  command
      ->add_option("-o,--output", options->outputs,
                   "also write the figures to this .csv, .svg, .html or .json file; the option may "
                   "be given again")
      ->allow_extra_args(false);  // the argument after the file may be NETWORK
  add_json(*command, options->json);
  command->footer(scale_footer);
  command->callback([options, &command_line] { scale_and_print(*options, command_line); });
}

}  // namespace stratplan
