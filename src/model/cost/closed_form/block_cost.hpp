#pragma once
// What a block costs in closed form: the sum of the prices of its passes
// (partition/layers/pass.hpp), without making a program. Nothing here depends on where in the
// machine a grid's digits lie, so it is worked out once for all grids with the same parts per
// dimension; what does, the transport of a collective, is priced for each grid from GroupShape.
// What the interior/boundary split hides is left out.
#include <array>
#include <cstdint>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/grid_space.hpp"
#include "model/partition/layers/fusion.hpp"
#include "model/partition/lowering/recompute.hpp"

namespace stratplan {

/// The sets of dimensions along which blocks communicate: ranks that hold terms of the same
/// outputs; of the same mean over space; the same parameters, or channels' statistics; all that do
/// not repeat another's work; all.
inline constexpr DimSet along_channels{Dim::C}, along_space{Dim::D, Dim::H, Dim::W},
    along_blocks{Dim::N, Dim::D, Dim::H, Dim::W},
    along_work{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W},
    along_all{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W, Dim::R};
inline constexpr std::array collective_dims{along_channels, along_space, along_blocks, along_work,
                                            along_all};

/// A collective over all ranks that differ along `dims` (one of collective_dims) alone; along N
/// only over the first `samples` blocks (0: all).
struct BlockCollective {
  Collective op = Collective::AllReduce;
  DataType type = DataType::F32;
  Bytes bytes{};
  DimSet dims;
  int samples = 0;
  bool gradient = false;  ///< of parameters: can go on beside the backward phase
  /// in an iteration; gradients travel in buckets that several layers share, so it need not be
  /// whole
  double times = 1;
};

struct BlockPieces {
  Seconds forward{}, backward{}, update{};  ///< kernels
  Tier tier = Tier::Measured;
  std::int64_t ops = 0;         ///< all of them, collectives included
  Bytes persistent{}, saved{};  ///< as of LayerCost
  std::vector<BlockCollective> collectives;
};

class ClosedFormBlockCost {
 public:
  /// All must outlive this.
  ClosedFormBlockCost(const Network& network, const Block& block, const Execution& execution,
                      const MachineProfile& machine);

  /// Of one rank of the decomposition's grid; the first has the longest blocks. Requires that the
  /// decomposition is legal. Safe to call from several threads.
  BlockPieces pieces(const Decomposition& root, int rank = 0) const;

 private:
  const Network& network_;
  const Block& block_;
  const Execution& execution_;
  const MachineProfile& machine_;
  const Recomputation recomputation_;
  std::vector<bool> counted_;  ///< by place in the block: consumers keep the layer's output anyway
};

}  // namespace stratplan
