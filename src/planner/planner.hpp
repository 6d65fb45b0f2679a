#pragma once
// From a network and a machine to a plan: candidates, cost table, search, and a second opinion from the simulator on what the search found and on every
// baseline.
#include <optional>
#include <string>
#include <vector>

#include "model/cost/machine_profile.hpp"
#include "model/plan.hpp"
#include "search/search.hpp"

namespace stratplan {

struct PlanningOptions {
  NetworkOverrides overrides;         ///< as given for the network, for plan.json
  std::optional<Bytes> memory_limit;  ///< per rank; default: the machine's, if it states one
  Execution execution;
  SearchLimits limits;
};

/// A plan that was considered, or would have been.
struct Considered {
  std::string name;                  ///< "searched", "searched, communication x2", or the baseline's
  std::vector<std::string> aliases;  ///< under which other names the same plan came up
  std::optional<Plan> plan;          ///< with its prediction
  std::string infeasible;            ///< why it can not be used: no such plan, or more memory than the limit (then there is a plan)
  bool usable() const { return plan && infeasible.empty(); }
};

struct PlanningResult {
  Plan recommended;       ///< named "recommended": the usable one with the least simulated step time; of equal ones the one on the fewest ranks
  std::string chosen;     ///< the name of the one that it is
  std::string reranking;  ///< what the simulator changed about the search's choice; empty: nothing
  std::optional<Bytes> memory_limit;  ///< that applied

  bool optimal = false;        ///< "searched" is proven best for the search's objective: the sum of all layers' and edges' costs, on all ranks
  double gap = 0;              ///< if not: by what fraction something could be better at most
  Seconds objective{};         ///< of "searched"
  Seconds lower_bound{};       ///< of the objective, for all plans within the memory limit
  std::size_t blocks = 0;      ///< groups of layers that share a decomposition
  std::size_t candidates = 0;  ///< legal decompositions, all blocks together
  std::size_t rejections = 0;  ///< illegal ones
  Seconds search_seconds{};    ///< time spent searching, the costs that it asked for included

  std::vector<Considered> searched;  ///< of different weights on communication; the first has the true ones
  std::vector<Considered> baselines;
};

/// Throws InfeasibleError with the reason, and what would do: the least memory, the least ranks.
PlanningResult plan(const Network& network, const std::string& source, int ranks, const MachineProfile& machine, const PlanningOptions& options = {});

/// What is worth measuring next: the recommended plan, other plans that the search found, and the baselines, all usable.
std::vector<const Plan*> plans_to_measure(const PlanningResult& result);

}  // namespace stratplan
