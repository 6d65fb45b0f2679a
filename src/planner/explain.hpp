#pragma once
// Explains a plan: the cost of each block under its decomposition and under the next best ones,
// with the rest of the plan unchanged.
#include <optional>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// The cost of a block under one decomposition, with the edges to its neighbours in the plan. Times
/// are per iteration, without waiting and without overlap. The block's times are those of its
/// slowest rank, and each edge's time is that of the edge's slowest rank.
struct Alternative {
  Decomposition decomposition;  ///< decomposition of the block's root
  Seconds compute{};            ///< kernels
  /// collectives that kernels wait for: sums of partial results, statistics, the loss
  Seconds sums{};
  Seconds reduction{};  ///< sums of gradients; with sharding also the gathering of parameters
  /// edges whose tensor is split alike at both ends: halos, and sums of the gradients of gathered
  /// tensors
  Seconds halo{};
  /// edges whose tensor is split differently at both ends, and transfers inside the block
  Seconds redistribution{};
  Range range{};   ///< of total(), in seconds
  Tier tier{};     ///< the least sure tier on which at least 5 % of total() rests
  Bytes memory{};  ///< persistent memory, and memory saved for the backward phase
  std::optional<Prediction> simulated{};  ///< the whole plan with this decomposition in this block
  Seconds total() const { return compute + sums + reduction + halo + redistribution; }
};

struct BlockExplanation {
  Block block;
  Alternative chosen;
  std::vector<Alternative>
      others;                  ///< ascending by total(); does not contain the chosen decomposition
  std::size_t candidates = 0;  ///< number of legal decompositions of the block
};

/// Returns the blocks of a plan, each with up to `others` alternatives. If the layers of one block
/// have different decompositions, the decomposition of the block's root counts. At large scale
/// (is_large_scale()), candidates are ranked by closed-form costs, and only the candidates in the
/// result are lowered. Otherwise candidates are ranked by the costs of their lowered programs.
/// Programs are lowered for modelled_ranks() only.
std::vector<BlockExplanation> explain(const Plan& plan, const Network& network,
                                      const MachineProfile& machine, std::size_t others);
/// Explains the block that holds `layer`, which must not be an input. Also simulates the whole plan
/// with each alternative.
BlockExplanation explain_layer(const Plan& plan, const Network& network,
                               const MachineProfile& machine, LayerIndex layer, std::size_t others);

}  // namespace stratplan
