#pragma once
// How the recommended plan was chosen: the objective of the search's plan and its gap, plans whose
// steps cannot be told apart, and the measurement that would decide between them.
#include <string>

#include "model/machine/machine_profile.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// Returns a text such as "12.3 ms, the sum of the costs of layers and edges of "searched": proven
/// best". A gap in the text is one of the objective. The simulated step includes overlap and
/// contention, so its own gap is unknown.
std::string objective_text(const PlanningResult& result);

/// Returns one line with the plans that tie and their steps, and one with the command of the
/// measurement that would reduce the doubt most, unless they have equal errors. Empty if there is
/// no tie.
std::string tie_text(const PlanningResult& result, const MachineProfile& machine);
/// Returns that command. Requires a tie whose doubt is known.
std::string deciding_command(const PlanningResult& result, const MachineProfile& machine);

}  // namespace stratplan
