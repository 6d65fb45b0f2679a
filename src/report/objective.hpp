#pragma once
// The objective of the search's plan, and the gap to the lower bound, as text.
#include <string>

#include "planner/planner.hpp"

namespace stratplan {

/// Returns a text such as "12.3 ms, the sum of the costs of layers and edges of "searched": proven
/// best". A gap in the text is one of the objective. The simulated step includes overlap and
/// contention, so its own gap is unknown.
std::string objective_text(const PlanningResult& result);

}  // namespace stratplan
