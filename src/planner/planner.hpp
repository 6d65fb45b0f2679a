#pragma once
// From a network and a machine to a plan: candidates, cost table, search, and then a simulation of
// the search's result and of every baseline.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "search/search.hpp"

namespace stratplan {

/// The memory-saving options that the planner may choose if memory is short
/// (planner/memory_saving). Options that are not free stay as in Network::training and
/// PlanningOptions::execution.
struct FreeMemoryOptions {
  bool micro_batches = true, sharding = true, recompute = true;
};

struct PlanningOptions {
  NetworkOverrides overrides;         ///< overrides of the network, recorded in plan.json
  std::optional<Bytes> memory_limit;  ///< per rank; empty: the device's memory, if stated
  Bytes reserve{};                    ///< part of the limit on which no plan may count
  bool counts_on_reserve = false;     ///< plan() leaves no reserve of its own
  Execution execution;
  SearchLimits limits;
  /// of each search over many ranks: then the best plan so far is taken, with the gap reached
  std::optional<Seconds> time_limit{};
  /// called during each search over many ranks with the time that it has taken so far
  std::function<void(Seconds)> on_search{};
  FreeMemoryOptions free;
  bool front = false;  ///< whether to compute the front of time against memory
};

/// A plan that was considered, or a baseline that has no plan.
struct Considered {
  std::string name;                  ///< for example "searched, communication x2" or "lbann"
  std::vector<std::string> aliases;  ///< other names of the same plan
  std::optional<Plan> plan;          ///< with its prediction
  /// why the plan cannot be used; empty if it can. The plan does not exist, is too slow to be worth
  /// a simulation, or needs more memory than the limit. `plan` is set only in the last case
  std::string infeasible;
  bool usable() const { return plan && infeasible.empty(); }
};

/// Plans whose steps cannot be told apart.
struct Tie {
  std::vector<std::string> plans;  ///< names of considered plans, the fastest first; at least two
  /// The kind of error that contributes most to the doubt between the recommended plan and the
  /// fastest other one; nothing if these two have equal errors.
  std::optional<ErrorKind> doubt{};
};

struct PlanningResult {
  /// the simplest of the plans that tie with the fastest usable one (planner/recommendation.hpp).
  /// Its name is "recommended"
  Plan recommended;
  std::string chosen;  ///< the recommended plan's name among those considered
  /// why the recommended plan is not the one that the search ranked first; empty if it is
  std::string reranking;
  Seconds fastest_step{};             ///< of the fastest usable plan
  std::optional<Tie> tie;             ///< nothing if no other plan ties with the fastest
  std::optional<Bytes> memory_limit;  ///< the limit that applied, less the reserve
  Bytes reserve{};                    ///< PlanningOptions::reserve

  /// name of the searched plan to which `optimal`, `gap` and `objective` refer; it uses all ranks
  std::string searched_name = "searched";
  /// whether the plan `searched_name` is proven to have the least objective among plans over all
  /// ranks. The objective is the sum of all layers' and edges' costs. At large scale it also counts
  /// gradient sums that the backward phase cannot hide
  bool optimal = false;
  double gap = 0;         ///< if not optimal: objective / lower_bound - 1; infinite without a bound
  Seconds objective{};    ///< objective of the plan `searched_name`
  Seconds lower_bound{};  ///< lower bound of the objective over all plans within the memory limit
  std::size_t blocks = 0;      ///< number of blocks: groups of layers that share a decomposition
  std::size_t candidates = 0;  ///< legal decompositions, summed over all blocks
  std::size_t rejections = 0;  ///< illegal decompositions, summed over all blocks
  Seconds search_seconds{};    ///< time spent searching, including the evaluation of costs

  /// plans found under different weights on communication, weight 1 first; at large scale, plans
  /// found under one weight, ascending by objective
  std::vector<Considered> searched;
  std::vector<Considered> baselines;
  /// plans with other micro-batches, sharding or recomputation than the options state; only if the
  /// memory limit binds, or for the front
  std::vector<Considered> fitted;

  /// prediction of the fastest plan with the options as given, if that plan exceeds the limit
  std::optional<Prediction> without_limit;
  /// if requested: the considered plans that no other plan beats in both time and memory, fastest
  /// first; contains the recommended plan, unless a faster one ties with it
  std::vector<Considered> front;
};

/// Returns a text such as "9 GiB, less a reserve of 769 MiB,". `limit`: what plans may count on.
std::string limit_text(Bytes limit, Bytes reserve);

/// Returns `network` with the micro-batches of `plan`, which was made for this network.
Network network_of(const Plan& plan, const Network& network);

/// Returns the options that a software leaves free.
FreeMemoryOptions free_under(const Software& software, FreeMemoryOptions free);
/// Throws InfeasibleError if the software cannot run the execution's sharding or recomputation.
void check_saving(const Software& software, const Execution& execution);
/// Throws InfeasibleError if the software cannot run a decomposition of the plan.
void check_decompositions(const Software& software, const Plan& plan);

/// Throws InfeasibleError if no plan fits. The message gives the reason and a remedy: the least
/// memory, or the number of ranks that would be enough. A part of the memory is a reserve
/// (reserve() in software.hpp). Plans count on it only if no plan fits without. A limit below
/// least_conceivable_memory() (planner/memory_limit.hpp) is refused without a search.
PlanningResult plan(const Network& network, const std::string& source, int ranks,
                    const MachineProfile& machine, const PlanningOptions& options = {});

/// The fastest usable plan. Requires a result of plan().
const Considered& fastest(const PlanningResult& result);

/// The plans worth measuring next: the recommended plan, the fastest one, other plans found by the
/// search, and the baselines. All are usable.
std::vector<const Plan*> plans_to_measure(const PlanningResult& result);

}  // namespace stratplan
