#pragma once
// The memory-saving options that the planner chose because of a memory limit, their cost, and the
// Pareto front of time against memory.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "planner/planner.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Returns one sentence about the options and their cost; empty if the fastest plan fits without
/// them.
std::string limit_text(const PlanningResult& result);
/// {"memory_limit_bytes", "micro_batches", "sharding", "recompute", "without_limit":
/// {"step_seconds", "memory_bytes"}, "cost": fraction}
Json limit_to_json(const PlanningResult& result);

/// One row per point of the front, the fastest first.
Table front_table(const PlanningResult& result);
/// [{"predicted_step_seconds", "memory_bytes", "plan", "ranks", "micro_batches", "sharding",
/// "recompute", "fits", "recommended"}]
Json front_to_json(const PlanningResult& result);

}  // namespace stratplan
