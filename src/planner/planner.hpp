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
/// (planner/memory_saving). Options that are not free stay as in the network's training and
/// `execution`.
struct FreeMemoryOptions {
  bool micro_batches = true, sharding = true, recompute = true;
};

struct PlanningOptions {
  NetworkOverrides overrides;         ///< the network's overrides, for plan.json
  std::optional<Bytes> memory_limit;  ///< per rank; default: the machine's, if it states one
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
  /// why the plan cannot be used: it does not exist, or it needs more memory than the limit (then
  /// `plan` is set)
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

  /// the searched plan that `optimal`, `gap` and `objective` are about; it uses all ranks
  std::string searched_name = "searched";
  /// whether that plan is proven best for the search's objective, the sum of all layers' and edges'
  /// costs, among plans over all ranks
  bool optimal = false;
  double gap = 0;          ///< otherwise: the largest possible improvement, as a fraction
  Seconds objective{};     ///< objective of that plan
  Seconds lower_bound{};   ///< lower bound of the objective over all plans within the memory limit
  std::size_t blocks = 0;  ///< groups of layers that share a decomposition
  std::size_t candidates = 0;  ///< legal decompositions, summed over all blocks
  std::size_t rejections = 0;  ///< illegal ones
  Seconds search_seconds{};    ///< time spent searching, including the evaluation of costs

  std::vector<Considered>
      searched;  ///< under different weights on communication; the first has weight 1
  std::vector<Considered> baselines;
  /// with other micro-batches, sharding or recomputation; only if the limit binds, or for the front
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
