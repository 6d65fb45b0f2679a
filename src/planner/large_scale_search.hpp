#pragma once
// The search over all canonical grids of many ranks: costs in closed form, the optimum bracketed.
#include <optional>
#include <vector>

#include "model/cost/closed_form/closed_table.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {

struct LargeScaleResult {
  std::vector<LayerDecompositions> found;  ///< different ones, the best by the objective first
  Seconds objective{}, lower_bound{};      ///< of the first, and of all within the memory limit
  std::size_t candidates = 0, rejections = 0;
};

/// Whether costs are taken in closed form: from this many ranks, on a machine of which rates are
/// known rather than kernels.
inline constexpr int large_scale_ranks = 5;
bool is_large_scale(int ranks, const MachineProfile& machine);

/// Fills all classes, on all cores.
void fill(ClosedTable& table);
/// Dimensions along which some layer has any extent. Others no layer can split.
std::vector<Dim> usable_dims(const Network& network);

/// `known`: plans over all ranks; what is found is no worse than those of them that use canonical
/// grids. Nothing found: none that fits the limit. Throws InfeasibleError if some layer has no
/// legal decomposition.
LargeScaleResult search_at_large_scale(const Network& network, const std::vector<Block>& blocks,
                                       int ranks, const MachineProfile& machine,
                                       const Execution& execution,
                                       std::optional<Bytes> memory_limit,
                                       const std::vector<LayerDecompositions>& known);

}  // namespace stratplan
