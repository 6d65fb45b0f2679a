#pragma once
// From a network and a machine to a plan: candidates, cost table, search, and then a simulation of
// the search's result and of every baseline.
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
  NetworkOverrides overrides;         ///< the network's overrides, for plan.json
  std::optional<Bytes> memory_limit;  ///< per rank; default: the device's memory, if stated
  Execution execution;
  SearchLimits limits;
  FreeMemoryOptions free;
  bool front = false;  ///< whether to compute the front of time against memory
};

/// A plan that was considered, or a baseline that has no plan.
struct Considered {
  std::string name;  ///< "searched", "searched, communication x2", or the baseline's
  std::vector<std::string> aliases;  ///< other names of the same plan
  std::optional<Plan> plan;          ///< with its prediction
  /// why the plan cannot be used: it does not exist, is too slow to simulate, or needs more memory
  /// than the limit (only then `plan` is set)
  std::string infeasible;
  bool usable() const { return plan && infeasible.empty(); }
};

struct PlanningResult {
  /// named "recommended": the usable plan with the least simulated step time; on a tie the one with
  /// the fewest ranks
  Plan recommended;
  std::string chosen;     ///< the recommended plan's name among those considered
  std::string reranking;  ///< how the simulator changed the search's choice; empty if it did not
  std::optional<Bytes> memory_limit;  ///< the limit that applied

  /// name of the searched plan to which `optimal`, `gap` and `objective` refer; it uses all ranks
  std::string searched_name = "searched";
  /// whether that plan is proven to have the least objective among plans over all ranks. The
  /// objective is the sum of all layers' and edges' costs
  bool optimal = false;
  double gap = 0;          ///< if not optimal: objective / lower_bound - 1
  Seconds objective{};     ///< objective of the plan `searched_name`
  Seconds lower_bound{};   ///< lower bound of the objective over all plans within the memory limit
  std::size_t blocks = 0;  ///< number of blocks: groups of layers that share a decomposition
  std::size_t candidates = 0;  ///< legal decompositions, summed over all blocks
  std::size_t rejections = 0;  ///< illegal decompositions, summed over all blocks
  Seconds search_seconds{};    ///< time spent searching, including the evaluation of costs

  std::vector<Considered>
      searched;  ///< plans found under different weights on communication, weight 1 first
  std::vector<Considered> baselines;
  /// plans with other micro-batches, sharding or recomputation; only if the memory limit binds, or
  /// for the front
  std::vector<Considered> fitted;

  /// prediction of the fastest plan with the options as given, if that plan exceeds the limit
  std::optional<Prediction> without_limit;
  /// if requested: the considered plans that no other plan beats in both time and memory, fastest
  /// first; contains the recommended plan
  std::vector<Considered> front;
};

/// `network` with the micro-batches of a plan that was made for it.
Network network_of(const Plan& plan, const Network& network);

/// Throws InfeasibleError if no plan fits. The message gives the reason and a remedy: the least
/// memory, or the number of ranks that would be enough. A limit below least_conceivable_memory()
/// (planner/memory_limit.hpp) is refused without a search.
PlanningResult plan(const Network& network, const std::string& source, int ranks,
                    const MachineProfile& machine, const PlanningOptions& options = {});

/// The plans worth measuring next: the recommended plan, other plans found by the search, and the
/// baselines. All are usable.
std::vector<const Plan*> plans_to_measure(const PlanningResult& result);

}  // namespace stratplan
