#pragma once
// The choice among the plans that the planner considered.
#include <vector>

#include "planner/planner.hpp"

namespace stratplan {

/// Times whose ratio is below this factor count as equal.
inline constexpr double same_time = 1 + 1e-12;

/// Returns whether `a` has the shorter step, or an equally long step on fewer ranks. Fewer ranks
/// are preferred because repeating all work on two ranks is no better than doing it on one.
/// Requires a prediction in both plans.
bool better(const Plan& a, const Plan& b);

/// Returns the usable plan that `better` prefers; null if none is usable.
const Considered* fastest(const std::vector<Considered>& list);

/// Whether two predicted steps cannot be told apart: with the errors that both share cancelled, the
/// probability that the first is shorter lies between 0.2 and 0.8.
bool is_tie(const Prediction& a, const Prediction& b);

/// Whether a plan is simpler than another. The first of these in which they differ decides: fewer
/// dimensions that any layer is split along; no repeated work (R); fewer memory-saving options
/// (micro-batches, sharding, recomputation); a split over samples.
bool simpler(const Plan& a, const Plan& b);

/// Returns the plans that no other plan beats in both time and memory, fastest first. Of plans with
/// equal times, the usable one that `better` prefers is kept.
std::vector<Considered> front_of(std::vector<const Considered*> considered);

/// Sets `recommended`, `chosen`, `reranking`, `fastest_step` and `tie`. Requires at least one
/// usable plan. Of the plans that tie with the fastest, the simplest is recommended; of equally
/// simple ones, the one that `better` prefers. `ranks`: the number of ranks offered.
void recommend(PlanningResult& result, int ranks);

}  // namespace stratplan
