#include "planner/recommendation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/base/text.hpp"

namespace stratplan {

bool better(const Plan& a, const Plan& b) {
  if (a.prediction->step * same_time < b.prediction->step) return true;
  return a.prediction->step < b.prediction->step * same_time && a.ranks < b.ranks;
}

const Considered* fastest(const std::vector<Considered>& list) {
  const Considered* best = nullptr;
  for (const Considered& considered : list)
    if (considered.usable() && (!best || better(*considered.plan, *best->plan))) best = &considered;
  return best;
}

std::vector<Considered> front_of(std::vector<const Considered*> considered) {
  std::erase_if(considered,
                [](const Considered* one) { return !one->plan || !one->plan->prediction; });
  std::ranges::stable_sort(considered, [](const Considered* a, const Considered* b) {
    return better(*a->plan, *b->plan);
  });
  std::vector<Considered> front;
  for (const Considered* next : considered) {
    if (front.empty()) {
      front.push_back(*next);
      continue;
    }
    const Considered& last = front.back();
    if (next->plan->prediction->memory >= last.plan->prediction->memory) continue;
    const bool as_long =
        next->plan->prediction->step.value <= last.plan->prediction->step.value * same_time;
    if (as_long && last.usable()) continue;
    if (as_long) front.pop_back();
    front.push_back(*next);
  }
  return front;
}

void recommend(PlanningResult& result, int ranks) {
  const Considered* best = nullptr;
  for (const auto* list : {&result.searched, &result.baselines, &result.fitted})
    if (const Considered* found = fastest(*list);
        found && (!best || better(*found->plan, *best->plan)))
      best = found;
  SP_ASSERT(best, "baselines={}", result.baselines.size());
  result.recommended = *best->plan;
  result.recommended.name = "recommended";
  result.chosen = best->name;
  if (result.searched.empty()) {
    result.reranking = fmt::format(
        "no plan over all {} fits {} per rank without further memory-saving options; the plan "
        "\"{}\" fits",
        counted(ranks, "rank"), limit_text(*result.memory_limit, result.reserve), best->name);
  } else if (best != &result.searched.front()) {
    const Plan& first = *result.searched.front().plan;
    result.reranking = fmt::format(
        "in the simulation, the plan \"{}\" takes {} ms per step on {}; the plan that the search "
        "ranked first takes {} ms on {}",
        best->name, milliseconds(best->plan->prediction->step), counted(best->plan->ranks, "rank"),
        milliseconds(first.prediction->step), first.ranks);
  }
}

namespace {

bool is_same(const Plan& a, const Plan& b) {
  return a.layers == b.layers && a.execution.recompute == b.execution.recompute &&
         a.execution.sharding == b.execution.sharding;
}

}  // namespace

std::vector<const Plan*> plans_to_measure(const PlanningResult& result) {
  std::vector<const Plan*> plans{&result.recommended};
  const auto add = [&](const Considered& considered) {
    if (!considered.usable()) return;
    const bool known = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) {
      return is_same(*plan, *considered.plan);
    });
    if (!known) plans.push_back(&*considered.plan);
  };
  for (const Considered& searched : result.searched) add(searched);
  for (const Considered& baseline : result.baselines) add(baseline);
  return plans;
}

}  // namespace stratplan
