#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/text.hpp"
#include "model/cost/plan_table.hpp"
#include "model/cost/simulator.hpp"
#include "model/network/micro_batches.hpp"
#include "model/partition/lowering/lower.hpp"
#include "planner/agreements.hpp"
#include "planner/baselines.hpp"
#include "planner/large_scale_search.hpp"
#include "planner/memory_limit.hpp"
#include "planner/memory_saving.hpp"
#include "planner/overlap.hpp"
#include "planner/prediction.hpp"
#include "planner/quick_estimate.hpp"
#include "planner/recommendation.hpp"
#include "planner/weighted_table.hpp"

namespace stratplan {

namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) {
  return {std::chrono::duration<double>(Clock::now() - start).count()};
}

/// The search space on a given number of ranks: the blocks, and the candidates of each block.
struct Space {
  std::vector<Block> blocks;
  std::vector<std::vector<Decomposition>> candidates{};  ///< per block
  std::size_t legal = 0, rejected = 0;
  std::vector<Agreement> agreements{};
};

Space space_of(const Network& network, int ranks, const MachineProfile& machine) {
  Space space{.blocks = fold(network)};
  const Topology topology = machine.topology(ranks);
  for (const Block& block : space.blocks) {
    Candidates found = candidates(network, block, topology, [&](const ProcessGrid& grid) {
      return can_run(machine.software, grid);
    });
    if (found.legal.empty() && found.rejected.empty() && !machine.software.dimensions.empty())
      throw InfeasibleError(
          fmt::format("{} can run no decomposition over {} ranks", machine.software.name, ranks));
    if (found.legal.empty()) {
      SP_ASSERT(!found.rejected.empty(), "{} ranks have no process grid", ranks);
      throw InfeasibleError(fmt::format("no decomposition over {} ranks is legal for layer {}: {}",
                                        ranks, network.layer(block.root()).name,
                                        found.rejected.front().reason));
    }
    space.legal += found.legal.size();
    space.rejected += found.rejected.size();
    space.candidates.push_back(std::move(found.legal));
  }
  space.agreements = keep_agreeable(network, space.blocks, space.candidates);
  for (std::size_t block = 0; block < space.blocks.size(); ++block)
    if (space.candidates[block].empty())
      throw InfeasibleError(fmt::format(
          "no decomposition over {} ranks splits the parameters that layer {} shares with other "
          "layers as these do",
          ranks, network.layer(space.blocks[block].root()).name));
  return space;
}

class Planning {
 public:
  Planning(const Network& network, const std::string& source, int ranks,
           const MachineProfile& machine, const PlanningOptions& options)
      : network_(network),
        source_(source),
        ranks_(ranks),
        machine_(machine),
        options_(options),
        limit_(network, ranks, machine, options),
        fingerprint_(machine.fingerprint()) {
    result_.memory_limit = limit_.value();
    result_.reserve = options.reserve;
  }

  PlanningResult run() {
    limit_.refuse_if_impossible();
    is_large_scale(ranks_, machine_) ? run_at_large_scale() : run_exactly();
    if (result_.without_limit || options_.front) choose_memory_options();
    recommend(result_, ranks_);
    if (options_.front) result_.front = front_of(all_considered());
    return std::move(result_);
  }

 private:
  void run_exactly() {
    const Space space = space_of(network_, ranks_, machine_);
    result_.blocks = space.blocks.size();
    result_.candidates = space.legal;
    result_.rejections = space.rejected;
    const PlanTable table(network_, space.blocks, space.candidates, options_.execution, machine_);
    search_all(space, table);
    price_baselines();
  }

  /// Runs the large-scale search, for more ranks than can be searched exactly, on a machine that
  /// has rates but no measured kernels.
  void run_at_large_scale() {
    price_baselines();
    const LargeScaleResult outcome =
        search_over_all(network_, options_.execution, {}, layouts_over_all());
    result_.blocks = fold(network_).size();
    result_.candidates = outcome.candidates;
    result_.rejections = outcome.rejections;
    state_objective(outcome.objective, outcome.lower_bound);
    for (const LayerDecompositions& layers : outcome.found) add_found(layers);
    if (result_.searched.front().usable()) return;
    remember_without_limit(result_.searched.front());
    std::erase_if(result_.searched, [](const Considered& searched) { return !searched.usable(); });
  }

  /// The layouts of the baselines over all ranks.
  std::vector<LayerDecompositions> layouts_over_all() const {
    std::vector<LayerDecompositions> known;
    for (const Considered& baseline : result_.baselines)
      if (baseline.plan && baseline.plan->ranks == ranks_) known.push_back(baseline.plan->layers);
    return known;
  }

  LargeScaleResult search_over_all(const Network& network, const Execution& execution,
                                   std::optional<Bytes> limit,
                                   const std::vector<LayerDecompositions>& known) {
    const auto start = Clock::now();
    const Stop is_late = [this, start] {
      const Seconds taken = since(start);
      if (options_.on_search) options_.on_search(taken);
      return options_.time_limit && taken > *options_.time_limit;
    };
    LargeScaleResult outcome = search_at_large_scale(network, fold(network), ranks_, machine_,
                                                     execution, limit, known, is_late);
    result_.search_seconds += since(start);
    return outcome;
  }

  void add_found(const LayerDecompositions& layers) {
    Plan plan;
    plan.ranks = ranks_;
    plan.layers = layers;
    const std::size_t place = result_.searched.size();
    add_searched(
        priced(place == 0 ? "searched" : fmt::format("searched, {}", place + 1), std::move(plan)));
  }

  // ---------------------------------------------------------------- if memory is short

  /// Stores the prediction of `considered`, which needs too much memory: the best plan found with
  /// the options as given. The limit does not restrict the execution of this plan. Resets the
  /// objective, since nothing is known yet about plans that fit.
  void remember_without_limit(Considered considered) {
    considered.plan->prediction = choose_execution(*considered.plan, network_, machine_);
    considered.infeasible = limit_.exceeded_text(considered.plan->prediction->memory);
    result_.without_limit = considered.plan->prediction;
    result_.objective = {};
    result_.optimal = false;
    result_.gap = 0;
    beyond_limit_.push_back(std::move(considered));
  }

  void choose_memory_options() {
    MemoryChoices choices(network_, ranks_, machine_, options_.execution, options_.free);
    for (const auto* list : {&beyond_limit_, &result_.searched, &result_.baselines})
      for (const Considered& considered : *list)
        if (considered.plan && considered.plan->ranks == ranks_)
          choices.know(considered.name, considered.plan->layers);
    if (result_.without_limit) {
      const Bytes limit = *limit_.value();
      if (is_large_scale(ranks_, machine_) && choices.fits_as_given(limit)) search_again(limit);
      choices.fit(limit, [&](const Network& network, const Execution& execution, Bytes room,
                             const std::vector<LayerDecompositions>& known) {
        return search_within(network, execution, room, known);
      });
    }
    if (options_.front) choices.trace_front();
    for (const Considered& tried : choices.tried()) {
      Considered considered{tried.name, {}, labelled(*tried.plan, tried.name), {}};
      if (!limit_.fits(considered.plan->prediction->memory))
        considered.infeasible = limit_.exceeded_text(considered.plan->prediction->memory);
      result_.fitted.push_back(std::move(considered));
    }
    if (fastest(result_.searched) || fastest(result_.baselines) || fastest(result_.fitted))
      return state_search_of_fitted(choices);
    remember_peak(choices.least_memory());
    throw OutOfMemoryError(limit_.nothing_fits_text(*least_peak_));
  }

  /// Searches with the options as given, within the limit.
  void search_again(Bytes limit) {
    const LargeScaleResult outcome =
        search_over_all(network_, options_.execution, limit, layouts_over_all());
    for (const LayerDecompositions& layers : outcome.found) add_found(layers);
    std::erase_if(result_.searched, [](const Considered& searched) { return !searched.usable(); });
    if (!result_.searched.empty()) state_objective(outcome.objective, outcome.lower_bound);
  }

  MemoryChoices::Found search_within(const Network& network, const Execution& execution,
                                     Bytes limit, const std::vector<LayerDecompositions>& known) {
    if (is_large_scale(ranks_, machine_)) {
      LargeScaleResult outcome = search_over_all(network, execution, limit, known);
      return {std::move(outcome.found), outcome.objective, outcome.lower_bound};
    }
    const Space space = space_of(network, ranks_, machine_);
    const PlanTable table(network, space.blocks, space.candidates, execution, machine_);
    const auto start = Clock::now();
    const auto found = search(table, space.agreements, limit, options_.limits);
    result_.search_seconds += since(start);
    if (!found) return {};
    return {{plan_of(space, found->assignment, ranks_).layers}, found->cost, found->lower_bound};
  }

  /// If a fitted plan is best, reports the objective and bound of the search under that plan's
  /// options.
  void state_search_of_fitted(const MemoryChoices& choices) {
    const Considered* fitted = fastest(result_.fitted);
    if (!fitted) return;
    for (const auto* list : {&result_.searched, &result_.baselines})
      if (const Considered* other = fastest(*list); other && !better(*fitted->plan, *other->plan))
        return;
    if (const auto found = choices.search_for(*fitted->plan); found && !found->layers.empty()) {
      state_objective(found->objective, found->lower_bound);
      result_.searched_name = "searched, " + memory_options_text(*fitted->plan);
    }
  }

  std::vector<const Considered*> all_considered() const {
    std::vector<const Considered*> all;
    for (const auto* list :
         {&result_.searched, &result_.baselines, &result_.fitted, &beyond_limit_})
      for (const Considered& considered : *list) all.push_back(&considered);
    return all;
  }

  Plan plan_of(const Space& space, const std::vector<int>& assignment, int ranks) const {
    std::vector<Decomposition> roots;
    for (std::size_t i = 0; i < assignment.size(); ++i)
      roots.push_back(space.candidates[i][static_cast<std::size_t>(assignment[i])]);
    Plan plan;
    plan.ranks = ranks;
    plan.layers = spread_all(network_, space.blocks, roots);
    return plan;
  }

  Plan finished(Plan plan, const std::string& name) const {
    plan.network_fingerprint = network_.fingerprint();
    plan.overrides.training = network_.training;
    plan.execution = options_.execution;
    return labelled(std::move(plan), name);
  }

  /// Fills in the plan's name, source, overrides, ranks and machine. Keeps its training, execution
  /// and network fingerprint, which depend on its memory-saving options.
  Plan labelled(Plan plan, const std::string& name) const {
    const Training training = plan.overrides.training;
    plan.name = name;
    plan.network_source = source_;
    plan.overrides = options_.overrides;
    plan.overrides.batch = network_.batch;
    plan.overrides.training = training;
    plan.ranks_offered = ranks_;
    plan.machine_name = machine_.full_name();
    plan.machine_fingerprint = fingerprint_;
    plan.software = machine_.software.name;
    return plan;
  }

  /// Simulates a plan, unless its estimated memory far exceeds the limit. `sum`: the plan's quick
  /// estimate, if it is already known.
  Considered priced(const std::string& name, Plan plan, bool thorough = true,
                    std::optional<QuickEstimate> sum = {}) {
    Considered considered{name, {}, finished(std::move(plan), name), {}};
    if (!sum) sum = quick_estimate(*considered.plan);
    if (const auto memory = far_too_much(sum)) {
      remember_peak(*memory);
      considered.infeasible = limit_.exceeded_text(*memory);
      return considered;
    }
    considered.plan->prediction =
        choose_execution(*considered.plan, network_, machine_, limit_.value(), thorough);
    const Bytes memory = considered.plan->prediction->memory;
    remember_peak(memory);
    if (!limit_.fits(memory)) considered.infeasible = limit_.exceeded_text(memory);
    return considered;
  }

  void remember_peak(Bytes memory) {
    const std::lock_guard lock(least_peak_guard_);
    least_peak_ = least_peak_ ? std::min(*least_peak_, memory) : memory;
  }

  std::optional<QuickEstimate> quick_estimate(const Plan& plan) const {
    return ranks_ > most_ranks_of_their_own
               ? std::optional(quick_estimate_of(plan, network_, machine_))
               : std::nullopt;
  }

  /// The estimated memory of a plan over many ranks, if it exceeds the limit by so much that a
  /// simulation is pointless.
  std::optional<Bytes> far_too_much(const std::optional<QuickEstimate>& sum) const {
    const bool far = sum && limit_.value() && sum->memory.value / 5 * 4 > limit_.value()->value;
    return far ? std::optional(sum->memory) : std::nullopt;
  }

  void search_all(const Space& space, const PlanTable& table) {
    search_without_limit(space, table);
    if (!result_.without_limit && result_.searched.empty()) return;
    if (result_.searched.empty()) search_with_weight(space, table, 1, "searched");
    if (result_.searched.empty()) return;
    search_with_weight(space, table, 2, "searched, communication x2");
    search_with_weight(space, table, 0.5, "searched, communication x0.5");
  }

  /// Searches without a memory limit. The plan found is used unless it needs too much memory.
  void search_without_limit(const Space& space, const PlanTable& table) {
    const auto start = Clock::now();
    const auto found = search(table, space.agreements, {}, options_.limits);
    result_.search_seconds += since(start);
    if (!found) return;
    state_objective(found->cost, found->lower_bound);
    Considered considered = priced("searched", plan_of(space, found->assignment, ranks_));
    considered.usable() ? add_searched(std::move(considered))
                        : remember_without_limit(std::move(considered));
  }

  /// Searches under a weight on communication, for a plan that fits when lowered. The table counts
  /// only persistent memory and memory saved for the backward phase. Transient buffers and gaps
  /// between buffers come on top. If the lowered plan exceeds the limit, the search repeats with a
  /// lower limit, until a plan fits or no leaner plan is left.
  void search_with_weight(const Space& space, const PlanTable& table, double weight,
                          const std::string& name) {
    const WeightedTable weighted(table, weight);
    const Bytes least = least_memory(weighted);
    std::optional<Bytes> limit = limit_.value();
    constexpr int attempts = 8;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (attempt + 1 == attempts) limit = least;
      const auto start = Clock::now();
      const auto found = search(weighted, space.agreements, limit, options_.limits);
      result_.search_seconds += since(start);
      if (!found) return;
      if (weight == 1 && attempt == 0) result_.lower_bound = found->lower_bound;
      Considered considered = priced(name, plan_of(space, found->assignment, ranks_));
      if (considered.usable()) {
        if (weight == 1) state_objective(found->cost, result_.lower_bound);
        return add_searched(std::move(considered));
      }
      if (found->memory <= least) return;
      const Bytes excess = considered.plan->prediction->memory - *limit_.value();
      limit = std::max(least, found->memory - std::max(excess, Bytes{1}));
    }
  }

  /// Sets the objective and its lower bound. `lower_bound` may come from a search with fewer
  /// constraints, because it also holds under more constraints.
  void state_objective(Seconds cost, Seconds lower_bound) {
    result_.objective = cost;
    result_.lower_bound = std::min(lower_bound, cost);
    result_.optimal = cost.value <= result_.lower_bound.value * same_time;
    result_.gap = result_.optimal ? 0 : cost / std::max(result_.lower_bound, Seconds{}) - 1;
  }

  void add_searched(Considered considered) {
    for (Considered& known : result_.searched) {
      if (known.plan->layers == considered.plan->layers)
        return known.aliases.push_back(considered.name);
    }
    result_.searched.push_back(std::move(considered));
  }

  void price_baselines() {
    const FitsMemory plan_fits = [&](const Plan& plan) {
      return limit_.fits(peak_memory(plan, network_, machine_));
    };
    std::vector<Baseline> all =
        baselines(network_, ranks_, machine_, options_.execution, plan_fits);
    if (ranks_ > most_ranks_of_their_own) keep_best_on_fewer_ranks(all);
    std::vector<Considered> prices = priced(all);
    for (Considered& considered : prices) {
      for (Considered& searched : result_.searched) {
        if (considered.plan && searched.plan->layers == considered.plan->layers)
          searched.aliases.push_back(considered.name);
      }
      result_.baselines.push_back(std::move(considered));
    }
  }

  /// First simulates the two baselines with the shortest estimates. On many ranks, any other
  /// baseline is skipped if its estimate, which leaves out gradient sums, is far longer than the
  /// shorter of the two simulated steps.
  std::vector<Considered> priced(std::vector<Baseline>& all) {
    constexpr std::size_t first = 2;
    constexpr double far_longer = 3;
    std::vector<Considered> prices;
    for (const Baseline& baseline : all) prices.push_back({baseline.name, {}, {}, baseline.reason});
    std::vector<std::optional<QuickEstimate>> quick_estimates(all.size());
    in_parallel(all.size(), [&](std::size_t i) {
      if (all[i].plan) quick_estimates[i] = quick_estimate(finished(*all[i].plan, all[i].name));
    });
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return !all[i].plan; });
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return quick_estimates[i] ? quick_estimates[i]->step : Seconds{0};
    });
    std::optional<Seconds> best;
    const auto price = [&](std::size_t i) {
      if (best && quick_estimates[i] && quick_estimates[i]->step > *best * far_longer)
        prices[i].infeasible = fmt::format(
            "too slow to be worth a simulation: its kernels and redistributions alone take "
            "about {}, over {} times the step of another baseline",
            duration(quick_estimates[i]->step), far_longer);
      else
        prices[i] = priced(all[i].name, std::move(*all[i].plan), false, quick_estimates[i]);
    };
    const std::size_t some = std::min(first, order.size());
    in_parallel(some, [&](std::size_t i) { price(order[i]); });
    for (const Considered& considered : prices)
      if (considered.usable() && (!best || considered.plan->prediction->step < *best))
        best = considered.plan->prediction->step;
    in_parallel(order.size() - some, [&](std::size_t i) { price(order[some + i]); });
    for (std::size_t i = 0; i < all.size(); ++i) prices[i].aliases = std::move(all[i].aliases);
    return prices;
  }

  /// Of the baselines on fewer ranks, keeps only the one whose first rank has the shortest
  /// simulated step. A full simulation of each would take too long.
  void keep_best_on_fewer_ranks(std::vector<Baseline>& all) const {
    std::string best;
    Seconds least{};
    const auto fewer = [&](const Baseline& baseline) {
      return baseline.plan && baseline.plan->ranks < ranks_;
    };
    for (const Baseline& baseline : all) {
      if (!fewer(baseline)) continue;
      const Seconds step =
          simulate({lower(network_, baseline.plan->layers, baseline.plan->execution, 0)}, machine_)
              .total;
      if (!best.empty() && step >= least) continue;
      least = step;
      best = baseline.name;
    }
    std::erase_if(
        all, [&](const Baseline& baseline) { return fewer(baseline) && baseline.name != best; });
  }

  const Network& network_;
  const std::string& source_;
  int ranks_;
  const MachineProfile& machine_;
  const PlanningOptions& options_;
  MemoryLimit limit_;
  std::string fingerprint_;
  std::mutex least_peak_guard_;
  std::optional<Bytes> least_peak_;  ///< least peak memory of all plans so far
  std::vector<Considered>
      beyond_limit_;  ///< the best plan with the options as given, if it exceeds the memory limit
  PlanningResult result_;
};

}  // namespace

PlanningResult plan(const Network& network, const std::string& source, int ranks,
                    const MachineProfile& machine, const PlanningOptions& options) {
  PlanningOptions within = options;
  if (!within.memory_limit && machine.device.memory.value > 0)
    within.memory_limit = machine.device.memory;
  const Bytes spare = within.memory_limit ? reserve(machine, *within.memory_limit) : Bytes{};
  if (spare.value > 0 && spare < *within.memory_limit && !options.counts_on_reserve) {
    PlanningOptions strict = within;
    strict.reserve = spare;
    try {
      return Planning(network, source, ranks, machine, strict).run();
    } catch (const OutOfMemoryError&) {  // a plan within the reserve is better than none
    }
  }
  return Planning(network, source, ranks, machine, within).run();
}

FreeMemoryOptions free_under(const Software& software, FreeMemoryOptions free) {
  free.sharding = free.sharding && software.shards;
  free.recompute = free.recompute && software.recomputes;
  return free;
}

void check_saving(const Software& software, const Execution& execution) {
  if (execution.sharding > 0 && !software.shards)
    throw InfeasibleError(
        fmt::format("{} cannot run --sharding {}", software.name, execution.sharding));
  if (!execution.recompute.empty() && !software.recomputes)
    throw InfeasibleError(fmt::format("{} cannot run --recompute", software.name));
}

void check_decompositions(const Software& software, const Plan& plan) {
  for (const Decomposition& layer : plan.layers)
    if (!can_run(software, layer.grid))
      throw InfeasibleError(fmt::format("{} cannot run {}", software.name, layer.text()));
}

std::string limit_text(Bytes limit, Bytes reserve) {
  return reserve.value == 0
             ? exact(limit)
             : fmt::format("{}, less a reserve of {},", exact(limit + reserve), readable(reserve));
}

Network network_of(const Plan& plan, const Network& network) {
  return plan.overrides.training == network.training
             ? network
             : with_micro_batches(network, plan.overrides.training.micro_batches).value();
}

}  // namespace stratplan
