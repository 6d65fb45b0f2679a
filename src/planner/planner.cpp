#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "model/base/error.hpp"
#include "model/cost/block_model.hpp"
#include "model/cost/memory.hpp"
#include "model/cost/plan_table.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lower.hpp"
#include "planner/baselines.hpp"
#include "model/base/in_parallel.hpp"
#include "planner/overlap.hpp"
#include "planner/prediction.hpp"
#include "planner/weighted_table.hpp"
#include "planner/wide_search.hpp"

namespace stratplan {

namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) { return {std::chrono::duration<double>(Clock::now() - start).count()}; }

/// Rounded up, so that what is printed would do.
std::string mebibytes(Bytes bytes) { return fmt::format("{} MiB", (bytes.value + (1 << 20) - 1) >> 20); }
std::string milliseconds(Seconds seconds) { return fmt::format("{:.3f} ms", seconds.value * 1e3); }

/// What the search chooses from on some number of ranks.
struct Space {
  std::vector<Block> blocks;
  std::vector<std::vector<Decomposition>> candidates;  ///< per block
  std::size_t legal = 0, rejected = 0;
};

Space space_of(const Network& network, int ranks, const MachineProfile& machine) {
  Space space{fold(network), {}, 0, 0};
  const Topology topology = machine.topology(ranks);
  for (const Block& block : space.blocks) {
    Candidates found = candidates(network, block, topology);
    if (found.legal.empty()) {
      throw InfeasibleError(fmt::format("no decomposition over {} ranks is legal for layer {}: {}", ranks, network.layer(block.root()).name,
                                        found.rejected.empty() ? "there are none" : found.rejected.front().reason));
    }
    space.legal += found.legal.size();
    space.rejected += found.rejected.size();
    space.candidates.push_back(std::move(found.legal));
  }
  return space;
}

class Planning {
 public:
  Planning(const Network& network, const std::string& source, int ranks, const MachineProfile& machine, const PlanningOptions& options)
      : network_(network), source_(source), ranks_(ranks), machine_(machine), options_(options), fingerprint_(machine.fingerprint()) {
    result_.memory_limit = options.memory_limit;
    if (!result_.memory_limit && machine.device.memory.value > 0) result_.memory_limit = machine.device.memory;
  }

  PlanningResult run() {
    if (is_wide(ranks_, machine_)) return run_widely();
    const Space space = space_of(network_, ranks_, machine_);
    result_.blocks = space.blocks.size();
    result_.candidates = space.legal;
    result_.rejections = space.rejected;
    const PlanTable table(network_, space.blocks, space.candidates, options_.execution, machine_);
    search_all(space, table);
    price_baselines();
    recommend(space, table);
    return std::move(result_);
  }

 private:
  /// Over more ranks than can be tried one by one, on a machine of which rates are known rather than kernels.
  PlanningResult run_widely() {
    const std::vector<Block> blocks = fold(network_);
    price_baselines();
    std::vector<LayerDecompositions> known;
    for (const Considered& baseline : result_.baselines)
      if (baseline.plan && baseline.plan->ranks == ranks_) known.push_back(baseline.plan->layers);
    const auto start = Clock::now();
    const WideOutcome outcome = search_widely(network_, blocks, ranks_, machine_, options_.execution, result_.memory_limit, known);
    result_.search_seconds = since(start);
    result_.blocks = blocks.size();
    result_.candidates = outcome.candidates;
    result_.rejections = outcome.rejections;
    result_.objective = outcome.objective;
    result_.lower_bound = outcome.lower_bound;
    result_.gap = outcome.lower_bound.value > 0 ? outcome.objective / outcome.lower_bound - 1 : 0;
    result_.optimal = result_.gap <= 1e-12;
    for (std::size_t i = 0; i < outcome.found.size(); ++i) {
      Plan plan;
      plan.ranks = ranks_;
      plan.layers = outcome.found[i];
      add_searched(priced(i == 0 ? "searched" : fmt::format("searched, {}", i + 1), std::move(plan)));
    }
    if (!recommend())
      throw InfeasibleError(fmt::format("{} with batch {} does not fit into {} per rank on {} ranks: the leanest plan found needs {}", network_.name,
                                        network_.batch, mebibytes(*result_.memory_limit), ranks_, mebibytes(*least_peak_)));
    return std::move(result_);
  }

  Plan plan_of(const Space& space, const std::vector<int>& assignment, int ranks) const {
    std::vector<Decomposition> roots;
    for (std::size_t i = 0; i < assignment.size(); ++i) roots.push_back(space.candidates[i][static_cast<std::size_t>(assignment[i])]);
    Plan plan;
    plan.ranks = ranks;
    plan.layers = spread_all(network_, space.blocks, roots);
    return plan;
  }

  Plan finished(Plan plan, const std::string& name) const {
    plan.name = name;
    plan.network_source = source_;
    plan.network_fingerprint = network_.fingerprint();
    plan.overrides = options_.overrides;
    plan.overrides.batch = network_.batch;
    plan.overrides.training = network_.training;
    plan.ranks_offered = ranks_;
    plan.machine_name = machine_.name;
    plan.machine_fingerprint = fingerprint_;
    plan.execution = options_.execution;
    return plan;
  }

  Bytes peak_of(const Plan& plan) const { return peak_memory(modelled_programs(plan, network_), machine_).total(); }

  Considered priced(const std::string& name, Plan plan, bool thorough = true) {
    Considered considered{name, {}, finished(std::move(plan), name), {}};
    if (const auto memory = far_too_much(*considered.plan)) {
      remember_peak(*memory);
      considered.infeasible = too_much(*memory);
      return considered;
    }
    considered.plan->prediction = choose_execution(*considered.plan, network_, machine_, result_.memory_limit, thorough);
    const Bytes memory = considered.plan->prediction->memory;
    remember_peak(memory);
    if (!fits(memory)) considered.infeasible = too_much(memory);
    return considered;
  }

  void remember_peak(Bytes memory) {
    const std::lock_guard lock(least_peak_guard_);
    least_peak_ = least_peak_ ? std::min(*least_peak_, memory) : memory;
  }

  /// Whether a plan over many ranks needs so much, in closed form, that there is no use in playing it through.
  std::optional<Bytes> far_too_much(const Plan& plan) const {
    if (ranks_ <= most_ranks_of_their_own || !result_.memory_limit) return {};
    Bytes memory{};
    for (const Block& block : fold(network_)) {
      const BlockPieces pieces = BlockModel(network_, block, plan.execution, machine_).pieces(plan.layers[static_cast<std::size_t>(block.root())]);
      memory += pieces.persistent + pieces.saved;
    }
    return memory.value / 5 * 4 > result_.memory_limit->value ? std::optional(memory) : std::nullopt;
  }

  std::string too_much(Bytes memory) const {
    return fmt::format("needs {} per rank, the limit is {}", mebibytes(memory), mebibytes(*result_.memory_limit));
  }

  bool fits(Bytes memory) const { return !result_.memory_limit || memory <= *result_.memory_limit; }

  void search_all(const Space& space, const PlanTable& table) {
    search_with_weight(space, table, 1, "searched");
    if (result_.searched.empty()) return;
    search_with_weight(space, table, 2, "searched, communication x2");
    search_with_weight(space, table, 0.5, "searched, communication x0.5");
  }

  /// The table's memory adds up what persists and what backward reads; transient buffers and gaps come on top. So where the plan as lowered exceeds the
  /// limit, the search is asked again for less, until it fits or nothing leaner is left.
  void search_with_weight(const Space& space, const PlanTable& table, double weight, const std::string& name) {
    const WeightedTable weighted(table, weight);
    const Bytes least = least_memory(weighted);
    std::optional<Bytes> limit = result_.memory_limit;
    constexpr int attempts = 8;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      if (attempt + 1 == attempts) limit = least;
      const auto start = Clock::now();
      const auto found = search(weighted, limit, options_.limits);
      result_.search_seconds += since(start);
      if (!found) return;
      if (weight == 1 && attempt == 0) result_.lower_bound = found->lower_bound;
      Considered considered = priced(name, plan_of(space, found->assignment, ranks_));
      if (considered.usable()) {
        if (weight == 1) state_objective(*found);
        return add_searched(std::move(considered));
      }
      if (found->memory <= least) return;
      const Bytes excess = considered.plan->prediction->memory - *result_.memory_limit;
      limit = std::max(least, found->memory - std::max(excess, Bytes{1}));
    }
  }

  /// The bound of the first, least constrained search holds for all that fits.
  void state_objective(const SearchResult& found) {
    result_.objective = found.cost;
    SearchResult answer = found;
    answer.lower_bound = std::min(result_.lower_bound, found.cost);
    result_.optimal = answer.optimal();
    result_.gap = result_.optimal ? 0 : answer.gap();
  }

  void add_searched(Considered considered) {
    for (Considered& known : result_.searched) {
      if (known.plan->layers == considered.plan->layers) return known.aliases.push_back(considered.name);
    }
    result_.searched.push_back(std::move(considered));
  }

  void price_baselines() {
    const Fits plan_fits = [&](const Plan& plan) { return fits(peak_of(plan)); };
    std::vector<Baseline> all = baselines(network_, ranks_, machine_, options_.execution, plan_fits);
    if (ranks_ > most_ranks_of_their_own) keep_best_on_fewer_ranks(all);
    std::vector<Considered> prices(all.size());
    in_parallel(all.size(), [&](std::size_t i) {
      prices[i] = all[i].plan ? priced(all[i].name, std::move(*all[i].plan), false) : Considered{all[i].name, {}, {}, all[i].reason};
      prices[i].aliases = std::move(all[i].aliases);
    });
    for (Considered& considered : prices) {
      for (Considered& searched : result_.searched) {
        if (considered.plan && searched.plan->layers == considered.plan->layers) searched.aliases.push_back(considered.name);
      }
      result_.baselines.push_back(std::move(considered));
    }
  }

  /// Of the plans on fewer ranks only the best by its first rank alone: a look at each costs more than it tells.
  void keep_best_on_fewer_ranks(std::vector<Baseline>& all) const {
    std::string best;
    Seconds least{};
    const auto fewer = [&](const Baseline& baseline) { return baseline.plan && baseline.plan->ranks < ranks_; };
    for (const Baseline& baseline : all) {
      if (!fewer(baseline)) continue;
      const Seconds step = simulate({lower(network_, baseline.plan->layers, baseline.plan->execution, 0)}, machine_).total;
      if (!best.empty() && step >= least) continue;
      least = step;
      best = baseline.name;
    }
    std::erase_if(all, [&](const Baseline& baseline) { return fewer(baseline) && baseline.name != best; });
  }

  /// The shorter step, or as long a step on fewer ranks: repeating all work on two ranks is no better than doing it on one.
  static bool better(const Plan& a, const Plan& b) {
    constexpr double alike = 1 + 1e-12;
    if (a.prediction->step * alike < b.prediction->step) return true;
    return a.prediction->step < b.prediction->step * alike && a.ranks < b.ranks;
  }

  void recommend(const Space& space, const PlanTable& table) {
    if (!recommend()) throw InfeasibleError(why_nothing_fits(space, table));
  }

  /// False if nothing is usable.
  bool recommend() {
    const Considered* best = nullptr;
    for (const auto* list : {&result_.searched, &result_.baselines}) {
      for (const Considered& considered : *list) {
        if (considered.usable() && (!best || better(*considered.plan, *best->plan))) best = &considered;
      }
    }
    if (!best) return false;
    result_.recommended = *best->plan;
    result_.recommended.name = "recommended";
    result_.chosen = best->name;
    if (result_.searched.empty()) {
      result_.reranking = fmt::format("no plan over all {} ranks fits {} per rank; {} does", ranks_, mebibytes(*result_.memory_limit), best->name);
    } else if (best != &result_.searched.front()) {
      const Plan& first = *result_.searched.front().plan;
      result_.reranking =
          fmt::format("played through, \"{}\" takes {} per step on {} of the ranks; what the search put first takes {} on {}", best->name,
                      milliseconds(best->plan->prediction->step), best->plan->ranks, milliseconds(first.prediction->step), first.ranks);
    }
    return true;
  }

  std::string why_nothing_fits(const Space& space, const PlanTable& table) {
    priced("leanest", leanest_plan(space, table, ranks_));
    std::string enough = "; no number of ranks up to 64 would do";
    for (int more = 2 * ranks_; more <= 64; more *= 2) {
      const auto leaner = leanest_plan_on(more);
      if (!leaner) break;
      if (!fits(*leaner)) continue;
      enough = fmt::format("; {} ranks would do", more);
      break;
    }
    return fmt::format("{} with batch {} does not fit into {} per rank on {} ranks: the leanest plan needs {}{}", network_.name, network_.batch,
                       mebibytes(*result_.memory_limit), ranks_, mebibytes(*least_peak_), enough);
  }

  /// Each block's leanest candidate, of equal ones the cheapest in itself.
  Plan leanest_plan(const Space& space, const PlanTable& table, int ranks) const {
    std::vector<int> leanest;
    for (int node = 0; node < table.nodes(); ++node) {
      const auto weight = [&](int candidate) { return std::pair(table.node_memory(node, candidate), table.node_cost(node, candidate)); };
      int best = 0;
      for (int candidate = 1; candidate < table.candidates(node); ++candidate)
        if (weight(candidate) < weight(best)) best = candidate;
      leanest.push_back(best);
    }
    Plan plan = plan_of(space, leanest, ranks);
    plan.execution = options_.execution;
    return plan;
  }

  /// Its peak; nothing if the machine has fewer ranks.
  std::optional<Bytes> leanest_plan_on(int ranks) const {
    try {
      const Space space = space_of(network_, ranks, machine_);
      const PlanTable table(network_, space.blocks, space.candidates, options_.execution, machine_);
      return peak_of(leanest_plan(space, table, ranks));
    } catch (const InfeasibleError&) {
      return {};
    }
  }

  const Network& network_;
  const std::string& source_;
  int ranks_;
  const MachineProfile& machine_;
  const PlanningOptions& options_;
  std::string fingerprint_;
  std::mutex least_peak_guard_;
  std::optional<Bytes> least_peak_;  ///< of all plans looked at
  PlanningResult result_;
};

}  // namespace

PlanningResult plan(const Network& network, const std::string& source, int ranks, const MachineProfile& machine, const PlanningOptions& options) {
  return Planning(network, source, ranks, machine, options).run();
}

std::vector<const Plan*> plans_to_measure(const PlanningResult& result) {
  std::vector<const Plan*> plans{&result.recommended};
  const auto add = [&](const Considered& considered) {
    if (!considered.usable()) return;
    const bool known = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) { return plan->layers == considered.plan->layers; });
    if (!known) plans.push_back(&*considered.plan);
  };
  for (const Considered& searched : result.searched) add(searched);
  for (const Considered& baseline : result.baselines) add(baseline);
  return plans;
}

}  // namespace stratplan
