#include "planner/recommendation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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

namespace {

bool is_same(const Plan& a, const Plan& b) {
  return a.layers == b.layers && a.execution.recompute == b.execution.recompute &&
         a.execution.sharding == b.execution.sharding &&
         a.overrides.training == b.overrides.training;
}

/// The usable plans, each once, in the order of `better`.
std::vector<const Considered*> usable_plans(const PlanningResult& result) {
  std::vector<const Considered*> all;
  for (const auto* list : {&result.searched, &result.baselines, &result.fitted})
    for (const Considered& considered : *list)
      if (considered.usable()) all.push_back(&considered);
  std::ranges::stable_sort(
      all, [](const Considered* a, const Considered* b) { return better(*a->plan, *b->plan); });
  std::vector<const Considered*> distinct;
  for (const Considered* considered : all)
    if (std::ranges::none_of(distinct, [&](const Considered* known) {
          return is_same(*known->plan, *considered->plan);
        }))
      distinct.push_back(considered);
  return distinct;
}

/// What simpler() compares, in this order; less is simpler.
std::array<int, 4> complexity(const Plan& plan) {
  std::array<bool, dim_letters.size()> used{};
  for (const Decomposition& layer : plan.layers)
    for (std::size_t dim = 0; dim < used.size(); ++dim)
      used[dim] = used[dim] || layer.grid.parts(static_cast<Dim>(dim)) > 1;
  const bool repeats = std::exchange(used[static_cast<std::size_t>(Dim::R)], false);
  const int saving = (plan.overrides.training.micro_batches > 1) + (plan.execution.sharding > 0) +
                     !plan.execution.recompute.empty();
  return {static_cast<int>(std::ranges::count(used, true)), repeats, saving,
          !used[static_cast<std::size_t>(Dim::N)]};
}

std::string why_not_the_first(const PlanningResult& result, const Considered& best,
                              const Considered& fastest, int ranks) {
  if (result.searched.empty())
    return fmt::format(
        "no plan over all {} fits {} per rank without further memory-saving options; the plan "
        "\"{}\" fits",
        counted(ranks, "rank"), limit_text(*result.memory_limit, result.reserve), best.name);
  if (&best == &result.searched.front()) return {};
  if (&best != &fastest)
    return fmt::format("of the plans that tie with the fastest, \"{}\" is the simplest", best.name);
  const Plan& first = *result.searched.front().plan;
  if (first.ranks == best.plan->ranks &&
      milliseconds(first.prediction->step) == milliseconds(best.plan->prediction->step))
    return fmt::format(
        "in the simulation, the plan \"{}\" is as fast as the plan that the search ranked first",
        best.name);
  return fmt::format(
      "in the simulation, the plan \"{}\" takes {} ms per step on {}; the plan that the search "
      "ranked first takes {} ms on {}",
      best.name, milliseconds(best.plan->prediction->step), counted(best.plan->ranks, "rank"),
      milliseconds(first.prediction->step), first.ranks);
}

}  // namespace

bool is_tie(const Prediction& a, const Prediction& b) {
  return is_tie(b.step / a.step, deviation_of_ratio(a.errors, b.errors));
}

bool simpler(const Plan& a, const Plan& b) { return complexity(a) < complexity(b); }

void recommend(PlanningResult& result, int ranks) {
  std::vector<const Considered*> tied = usable_plans(result);
  SP_ASSERT(!tied.empty(), "baselines={}", result.baselines.size());
  const Considered& first = *tied.front();
  std::erase_if(tied, [&](const Considered* other) {
    return other != &first && !is_tie(*first.plan->prediction, *other->plan->prediction);
  });
  const Considered& best = **std::ranges::min_element(
      tied, [](const Considered* a, const Considered* b) { return simpler(*a->plan, *b->plan); });
  result.recommended = *best.plan;
  result.recommended.name = "recommended";
  result.chosen = best.name;
  result.fastest_step = first.plan->prediction->step;
  result.reranking = why_not_the_first(result, best, first, ranks);
  if (tied.size() == 1) return;
  result.tie.emplace();
  for (const Considered* plan : tied) result.tie->plans.push_back(plan->name);
  const Considered& other = &best == &first ? *tied[1] : first;
  const Sensitivity &ours = best.plan->prediction->errors, &its = other.plan->prediction->errors;
  if (deviation_of_ratio(ours, its) > 0) result.tie->doubt = largest_error(ours, its);
}

const Considered& fastest(const PlanningResult& result) { return *usable_plans(result).front(); }

std::vector<const Plan*> plans_to_measure(const PlanningResult& result) {
  std::vector<const Plan*> plans{&result.recommended};
  const auto add = [&](const Considered& considered) {
    if (!considered.usable()) return;
    const bool known = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) {
      return is_same(*plan, *considered.plan);
    });
    if (!known) plans.push_back(&*considered.plan);
  };
  add(fastest(result));
  for (const Considered& searched : result.searched) add(searched);
  for (const Considered& baseline : result.baselines) add(baseline);
  return plans;
}

}  // namespace stratplan
