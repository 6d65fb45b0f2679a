#pragma once
// The input of a plan's step: what each rank reads, how long that takes, and whether the step waits
// for it.
#include <optional>
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/cost/input_cost.hpp"

namespace stratplan {

struct InputFindings {
  InputPipeline input;
  Reading reading;     ///< of the rank that needs most time
  bool waits = false;  ///< whether the step is longer because of its input
};

/// Returns nothing if the machine has no description of the input.
std::optional<InputFindings> input_findings(const std::vector<Program>& programs,
                                            const MachineProfile& machine, Seconds step);

/// Returns a text such as "24.0 MiB per rank and step from nvme, read in 8.4 ms while the step
/// computes", or that input is not modelled.
std::string input_text(const std::optional<InputFindings>& findings);
Json to_json(const InputFindings& findings);

}  // namespace stratplan
