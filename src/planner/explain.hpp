#pragma once
// Why a plan is as it is: what each block costs under its decomposition and under the next best
// ones, the rest of the plan held as it is.
#include <optional>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// A block under one decomposition, with the edges to its neighbours as the plan has them. Times
/// are of one iteration, partners ready and nothing hidden: of the rank that has most to do in the
/// block, and of each edge's.
struct Alternative {
  Decomposition decomposition;  ///< of the block's root
  Seconds compute{};            ///< kernels
  Seconds sums{};  ///< collectives that kernels wait for: of partial sums, statistics, the loss
  Seconds reduction{};  ///< of gradients; where they are shared out, also gathering parameters
  /// edges to neighbours whose tensors are cut alike: what windows reach beyond, and sums of
  /// gathered gradients
  Seconds halo{};
  Seconds redistribution{};  ///< edges to neighbours whose tensors are cut otherwise
  Bytes memory{};            ///< what persists, and what the backward phase reads
  std::optional<Prediction>
      simulated{};  ///< the whole plan with this decomposition here, simulated
  Seconds total() const { return compute + sums + reduction + halo + redistribution; }
};

struct BlockExplanation {
  Block block;
  Alternative chosen;
  std::vector<Alternative>
      others;  ///< by the sum of costs, the least first; other decompositions than the chosen one
  std::size_t candidates = 0;  ///< legal decompositions of the block
};

/// The blocks of a plan, each with up to `others` alternatives; of a plan that gives the layers of
/// one block different decompositions, by the root's. Of few ranks candidates are ranked by their
/// lowered programs; of many (large_scale_ranks) in closed form, and those shown are lowered on the
/// ranks that stand for all.
std::vector<BlockExplanation> explain(const Plan& plan, const Network& network,
                                      const MachineProfile& machine, std::size_t others);
/// The block that holds this layer, which is no input; each alternative is also played through.
BlockExplanation explain_layer(const Plan& plan, const Network& network,
                               const MachineProfile& machine, LayerIndex layer, std::size_t others);

}  // namespace stratplan
