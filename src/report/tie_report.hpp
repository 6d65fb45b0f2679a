#pragma once
// Plans whose steps cannot be told apart, and the measurement that would decide between them.
#include <string>

#include "model/machine/machine_profile.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// Returns one line with the plans that tie and their steps, and one with the command of the
/// measurement that would reduce the doubt most, unless they have equal errors. Empty if there is no
/// tie.
std::string tie_text(const PlanningResult& result, const MachineProfile& machine);
/// Returns that command. Requires a tie whose doubt is known.
std::string deciding_command(const PlanningResult& result, const MachineProfile& machine);

}  // namespace stratplan
