#pragma once
// From a network and a machine to a plan: candidates, cost table, search, and a second opinion from
// the simulator on what the search found and on every baseline.
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "search/search.hpp"

namespace stratplan {

/// What the planner may choose where memory is short (planner/memory_saving). What it may not stays
/// as the network's training and `execution` say.
struct FreeMemoryOptions {
  bool micro_batches = true, sharding = true, recompute = true;
};

struct PlanningOptions {
  NetworkOverrides overrides;         ///< as given for the network, for plan.json
  std::optional<Bytes> memory_limit;  ///< per rank; default: the machine's, if it states one
  Execution execution;
  SearchLimits limits;
  FreeMemoryOptions free;
  bool front = false;  ///< of time against memory is wanted
};

/// A plan that was considered, or would have been.
struct Considered {
  std::string name;  ///< "searched", "searched, communication x2", or the baseline's
  std::vector<std::string> aliases;  ///< under which other names the same plan came up
  std::optional<Plan> plan;          ///< with its prediction
  /// why it can not be used: no such plan, or more memory than the limit (then there is a plan)
  std::string infeasible;
  bool usable() const { return plan && infeasible.empty(); }
};

struct PlanningResult {
  /// named "recommended": the usable one with the least simulated step time; of equal ones the one
  /// on the fewest ranks
  Plan recommended;
  std::string chosen;     ///< the name of the one that it is
  std::string reranking;  ///< what the simulator changed about the search's choice; empty: nothing
  std::optional<Bytes> memory_limit;  ///< that applied

  /// "searched" (with the recommended plan's means) is proven best for the search's objective: the
  /// sum of all layers' and edges' costs, on all ranks.
  bool optimal = false;
  double gap = 0;              ///< if not: by what fraction something could be better at most
  Seconds objective{};         ///< of "searched"
  Seconds lower_bound{};       ///< of the objective, for all plans within the memory limit
  std::size_t blocks = 0;      ///< groups of layers that share a decomposition
  std::size_t candidates = 0;  ///< legal decompositions, all blocks together
  std::size_t rejections = 0;  ///< illegal ones
  Seconds search_seconds{};    ///< time spent searching, the costs that it asked for included

  std::vector<Considered>
      searched;  ///< of different weights on communication; the first has the true ones
  std::vector<Considered> baselines;
  /// in other micro-batches, with sharding or recomputation: where the limit binds, or for the
  /// front
  std::vector<Considered> fitted;

  /// of the fastest plan with the means as given, if it needs more than the limit
  std::optional<Prediction> without_limit;
  /// if wanted: what nothing considered is both faster and leaner than; the fastest first, the
  /// recommended among them
  std::vector<Considered> front;
};

/// `network` in the micro-batches of a plan that was made for it.
Network network_of(const Plan& plan, const Network& network);

/// Throws InfeasibleError with the reason, and what would do: the least memory, the least ranks.
PlanningResult plan(const Network& network, const std::string& source, int ranks,
                    const MachineProfile& machine, const PlanningOptions& options = {});

/// What is worth measuring next: the recommended plan, other plans that the search found, and the
/// baselines, all usable.
std::vector<const Plan*> plans_to_measure(const PlanningResult& result);

}  // namespace stratplan
