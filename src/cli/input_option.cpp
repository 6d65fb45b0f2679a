#include "cli/input_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"
#include "model/machine/machine_parts.hpp"

namespace stratplan {
namespace {

template <class Number>
std::optional<Number> number_in(const std::string& text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

/// Takes the value of a setting. Returns whether the value is one of those expected.
using Take = std::function<bool(const std::string& value, InputPipeline& input)>;

/// Takes a value that is one of two words.
Take one_of(const char* yes, const char* no, bool InputPipeline::*member) {
  return [=](const std::string& value, InputPipeline& input) {
    input.*member = value == yes;
    return value == yes || value == no;
  };
}

template <class Number>
Take number(Number least, Number most, Number InputPipeline::*member) {
  return [=](const std::string& value, InputPipeline& input) {
    const std::optional<Number> found = number_in(value, least, most);
    if (found) input.*member = *found;
    return found.has_value();
  };
}

struct Setting {
  const char* word;
  const char* expected;
  const char* meaning;
  Take take;
};

constexpr int most_workers = 1024;
constexpr Bytes most_per_sample{1'000'000'000'000};
constexpr Bytes least_rate{10'000};  // per second, as in machine.json

/// All settings but cache, which also needs the machine.
const std::vector<Setting>& settings() {
  static const std::vector<Setting> all{
      {"sample", "a size such as 110kB, at most 1 TB",
       "stored size of a sample; default: 4 bytes per value",
       [](const std::string& value, InputPipeline& input) {
         input.sample = parse_bytes(value);
         return input.sample <= most_per_sample;
       }},
      {"files", "packed or per-sample", "whether each sample is a file of its own",
       one_of("per-sample", "packed", &InputPipeline::file_per_sample)},
      {"region", "yes or no", "whether a rank reads only its part of a split sample",
       one_of("yes", "no", &InputPipeline::by_region)},
      {"decode", "seconds from 0 to 1000", "time of one core to decode a sample",
       [](const std::string& value, InputPipeline& input) {
         const std::optional<double> seconds = number_in(value, 0.0, 1000.0);
         if (seconds) input.decode = {*seconds};
         return seconds.has_value();
       }},
      {"workers", "a number from 1 to 1024", "readers per rank",
       number(1, most_workers, &InputPipeline::workers)},
      {"prefetch", "a number from 0 to 1024", "steps that are read ahead",
       number(0, most_workers, &InputPipeline::prefetch)},
      {"samples", "a number from 1", "samples of the data set",
       number(std::int64_t{1}, std::int64_t{1} << 40, &InputPipeline::samples)},
  };
  return all;
}

/// The level of storage of the machine, or none.
const Storage* level_of(const MachineProfile& machine, const std::string& name) {
  const auto found = std::ranges::find(machine.storage, name, &Storage::name);
  return found == machine.storage.end() ? nullptr : &*found;
}

Storage parse_storage(const std::string& text, const MachineProfile& machine) {
  if (text.ends_with("/s")) {
    const Bytes rate = parse_bytes(text.substr(0, text.size() - 2));
    if (rate < least_rate)
      throw UsageError(fmt::format("--input: expected a rate from 10kB/s, found {}", text));
    return {.name = "storage of " + text, .bytes_per_s = static_cast<double>(rate.value)};
  }
  if (const Storage* level = level_of(machine, text)) return *level;
  std::vector<std::string> known = part_names("storage");
  if (std::ranges::count(known, text) > 0) return read_storage(text);
  if (std::ranges::count(storage_level_names, text) > 0)
    throw UsageError(
        fmt::format("--input: the machine {} states no storage {}; give a rate such as 2GB/s, or "
                    "one of {}",
                    machine.name, text, fmt::join(known, ", ")));
  for (const Storage& level : machine.storage) known.push_back(level.name);
  throw UsageError(fmt::format("--input: expected a rate such as 2GB/s or one of {}, found '{}'{}",
                               fmt::join(known, ", "), text, suggestion(text, known)));
}

/// Parses "memory", the machine's own memory, or the size of the memory of a node for the data set.
Storage parse_cache(const std::string& value, const MachineProfile& machine) {
  const Storage* stated = level_of(machine, "memory");
  Storage memory = stated ? *stated : Storage{.name = "memory"};
  if (value != "memory")
    memory.capacity = parse_bytes(value);
  else if (memory.capacity.value == 0)
    throw UsageError(
        fmt::format("--input: the machine {} states no capacity of its memory; give one, for "
                    "example cache=256GiB",
                    machine.name));
  return memory;
}

void take_setting(const std::string& assignment, const MachineProfile& machine,
                  InputPipeline& input) {
  const auto equals = assignment.find('=');
  const std::string word = assignment.substr(0, equals),
                    value = equals == std::string::npos ? "" : assignment.substr(equals + 1);
  if (word == "cache" && !value.empty()) {
    input.cache = parse_cache(value, machine);
    return;
  }
  const auto found =
      std::ranges::find_if(settings(), [&](const Setting& each) { return each.word == word; });
  if (found == settings().end() || value.empty()) {
    std::string known;
    for (const Setting& each : settings()) known += fmt::format("{}=VALUE, ", each.word);
    throw UsageError(fmt::format("--input: expected {}cache=VALUE, found '{}'", known, assignment));
  }
  if (!found->take(value, input))
    throw UsageError(
        fmt::format("--input: expected {} for {}, found '{}'", found->expected, word, value));
}

}  // namespace

void add_input(CLI::App& command, std::string& input) {
  std::vector<std::string> described;
  for (const Setting& each : settings())
    described.push_back(fmt::format("{} ({}; {})", each.word, each.meaning, each.expected));
  command.add_option(
      "--input", input,
      fmt::format(
          "STORAGE[,SETTING=VALUE,...]: what samples are read from, so that predictions "
          "include reading: a level of storage that the machine states ({}), a shipped "
          "storage, or the rate of one reader such as 2GB/s. Settings: {}, cache (memory "
          "of a node that holds the data set after the first epoch if it fits; a size, or "
          "memory for that of the machine). Default: as the plan records, else none: reading is "
          "not modelled",
          fmt::join(storage_level_names, ", "), fmt::join(described, ", ")));
}

InputPipeline parse_input(const std::string& text, const MachineProfile& machine,
                          InputPipeline defaults) {
  const std::vector<std::string> parts = split(text, ',');
  InputPipeline input = std::move(defaults);
  input.storage = parse_storage(parts.front(), machine);
  for (std::size_t i = 1; i < parts.size(); ++i) take_setting(parts[i], machine, input);
  if (input.cache && input.samples == 0)
    throw UsageError("--input: cache needs samples=NUMBER, the number of samples of the data set");
  return input;
}

void set_input(MachineProfile& machine, const std::string& text) {
  if (!text.empty() && text != "none") machine.input = parse_input(text, machine);
}

void set_input(MachineProfile& machine, const std::string& text, const Plan& plan,
               const std::string& file) {
  if (!text.empty()) return set_input(machine, text);
  try {
    set_input(machine, plan.input);
  } catch (const UsageError& wrong) {
    throw InputError(file, "/input",
                     fmt::format("{}; --input replaces it, none leaves it out", wrong.what()));
  }
}

}  // namespace stratplan
