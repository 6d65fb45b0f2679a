#pragma once
// Explains a plan: the cost of each block under its decomposition and under the next best ones,
// with the rest of the plan unchanged.
#include <optional>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// A block under one decomposition, with the edges to its neighbours in the plan. Times are per
/// iteration, without waiting and without overlap. The block's times are those of its slowest rank,
/// and each edge's time is that of the edge's slowest rank.
struct Alternative {
  Decomposition decomposition;  ///< decomposition of the block's root
  Seconds compute{};            ///< kernels
  /// collectives that kernels wait for: sums of partial results, statistics, the loss
  Seconds sums{};
  Seconds reduction{};  ///< sums of gradients; with sharding also gathering of parameters
  /// edges to neighbours whose tensors are split in the same way: halos, and sums of gathered
  /// gradients
  Seconds halo{};
  Seconds redistribution{};               ///< edges to neighbours whose tensors are split otherwise
  Bytes memory{};                         ///< persistent memory, and what the backward phase reads
  std::optional<Prediction> simulated{};  ///< the whole plan with this decomposition in this block
  Seconds total() const { return compute + sums + reduction + halo + redistribution; }
};

struct BlockExplanation {
  Block block;
  Alternative chosen;
  std::vector<Alternative>
      others;  ///< ascending by the sum of costs; does not contain the chosen decomposition
  std::size_t candidates = 0;  ///< legal decompositions of the block
};

/// Returns the blocks of a plan, each with up to `others` alternatives. If the layers of one block
/// have different decompositions, the root's counts. On a few ranks the lowered programs rank the
/// candidates. At large scale (large_scale_ranks) closed-form costs rank them, and the candidates
/// in the result are lowered on representative ranks.
std::vector<BlockExplanation> explain(const Plan& plan, const Network& network,
                                      const MachineProfile& machine, std::size_t others);
/// The block that holds this layer, which must not be an input. Each alternative is also simulated.
BlockExplanation explain_layer(const Plan& plan, const Network& network,
                               const MachineProfile& machine, LayerIndex layer, std::size_t others);

}  // namespace stratplan
