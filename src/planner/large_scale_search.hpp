#pragma once
// The search over all canonical grids of many ranks: closed-form costs and branch and bound.
#include <optional>
#include <vector>

#include "model/cost/closed_form/closed_table.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "search/branch_and_bound.hpp"

namespace stratplan {

struct LargeScaleResult {
  std::vector<LayerDecompositions> found;  ///< layouts of different plans, ascending by objective
  /// objective of the first plan, and a lower bound for all plans within the memory limit
  Seconds objective{}, lower_bound{};
  std::size_t candidates = 0, rejections = 0;
};

/// Costs are computed in closed form from this many ranks on, if the machine has rates but no
/// measured kernels. is_large_scale() returns whether both conditions hold.
inline constexpr int large_scale_ranks = 5;
bool is_large_scale(int ranks, const MachineProfile& machine);

/// Fills all block classes of the table, in parallel on all cores.
void fill(ClosedTable& table);
/// The dimensions that some layer may be able to split. D, H or W is left out if its extent is 1 in
/// all layers.
std::vector<Dim> usable_dims(const Network& network);

/// Searches for the plans with the least objective within the memory limit. `known`: layouts over
/// all ranks, from which the search starts. Known layouts without canonical grids are ignored. The
/// objective is no worse than that of any other known layout within the limit. The result's
/// `found` is empty if no plan within the limit is found. Once `stop` returns true, the answer is
/// the best plan found so far, with the bound reached. Throws InfeasibleError if some layer has no
/// legal decomposition.
LargeScaleResult search_at_large_scale(const Network& network, const std::vector<Block>& blocks,
                                       int ranks, const MachineProfile& machine,
                                       const Execution& execution,
                                       std::optional<Bytes> memory_limit,
                                       const std::vector<LayerDecompositions>& known,
                                       const Stop& stop = {});

}  // namespace stratplan
