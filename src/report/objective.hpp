#pragma once
// What the search minimized, and how near it came.
#include <string>

#include "planner/planner.hpp"

namespace stratplan {

/// "12.3 ms, the sum of the costs of layers and edges: proven best". The gap is the objective's; a
/// simulated step, which overlaps and contends, is another number.
std::string objective_text(const PlanningResult& result);

}  // namespace stratplan
