#pragma once
// What a memory limit made the planner choose, what that cost, and the front of time against
// memory.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "planner/planner.hpp"
#include "report/table.hpp"

namespace stratplan {

/// In a sentence; empty if the fastest plan fits anyway.
std::string limit_text(const PlanningResult& result);
/// {"memory_limit_bytes", "micro_batches", "sharding", "recompute", "without_limit":
/// {"step_seconds", "memory_bytes"}, "cost": fraction}
Json limit_to_json(const PlanningResult& result);

/// A row per point, the fastest first.
Table front_table(const PlanningResult& result);
/// [{"predicted_step_seconds", "memory_bytes", "plan", "ranks", "micro_batches", "sharding",
/// "recompute", "fits", "recommended"}]
Json front_to_json(const PlanningResult& result);

}  // namespace stratplan
