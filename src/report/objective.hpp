#pragma once
// The objective of the search's plan, and the gap to the lower bound, as text.
#include <string>

#include "planner/planner.hpp"

namespace stratplan {

/// "12.3 ms, the sum of the costs of layers and edges of "searched": proven best". The gap is one
/// of the objective, not of the simulated step, which knows overlap and contention.
std::string objective_text(const PlanningResult& result);

}  // namespace stratplan
