#include "report/input_report.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

const Storage& storage_of(const InputFindings& findings) {
  return findings.reading.cached ? *findings.input.cache : findings.input.storage;
}

}  // namespace

std::optional<InputFindings> input_findings(const std::vector<Program>& programs,
                                            const MachineProfile& machine, Seconds step) {
  if (!machine.input) return {};
  const Reading longest = longest_reading(programs, machine);
  return InputFindings{*machine.input, longest, waits_for_input(*machine.input, longest, step)};
}

std::string input_text(const std::optional<InputFindings>& findings) {
  if (!findings) return "not modelled; --input says where the samples are read from";
  const auto& [input, reading, waits] = *findings;
  return fmt::format("{} per rank and step from {}{}, read in {} ms{}",
                     readable(reading.share.bytes), storage_of(*findings).name,
                     reading.cached ? " after the first epoch" : "", milliseconds(reading.seconds),
                     input.prefetch == 0 && waits ? " before the step computes"
                     : waits                      ? ": the step waits for it"
                                                  : " while the step computes");
}

Json to_json(const InputFindings& findings) {
  const Reading& reading = findings.reading;
  return {{"storage", storage_of(findings).name},
          {"cached", reading.cached},
          {"bytes_per_rank", reading.share.bytes.value},
          {"samples_per_rank", reading.share.samples},
          {"files_per_rank", reading.share.files},
          {"reading_seconds", reading.seconds.value},
          {"step_waits", findings.waits}};
}

}  // namespace stratplan
