#pragma once
// Plans whose steps cannot be told apart, and the measurement that would decide between them.
#include <string>

#include "model/machine/machine_profile.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// Returns two lines: the plans that tie, with their steps, and the command of the measurement that
/// would reduce the doubt most. Empty if there is no tie.
std::string tie_text(const PlanningResult& result, const MachineProfile& machine);
/// Returns that command.
std::string deciding_command(const PlanningResult& result, const MachineProfile& machine);

}  // namespace stratplan
