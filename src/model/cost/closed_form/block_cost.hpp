#pragma once
// The closed-form cost of a block: the sum of the costs of its passes (partition/layers/pass.hpp).
// No program is made. The pieces (BlockPieces) do not depend on where in the machine a grid's
// digits lie. So the pieces are computed once for all grids with the same parts per dimension. The
// cost of a collective depends on where the digits lie. So it is computed for each grid, from a
// GroupShape. The time that the interior/boundary split hides is not subtracted.
#include <cstdint>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/grid_space.hpp"
#include "model/partition/layers/fusion.hpp"
#include "model/partition/lowering/recompute.hpp"

namespace stratplan {

/// The sets of dimensions along which blocks communicate:
///   along_channels  ranks that hold terms of the same outputs
///   along_space     ranks that share a mean over space
///   along_blocks    ranks that share parameters, or statistics per channel
///   along_work      all ranks that do not repeat another rank's work
///   along_all       all ranks
///   along_replicas  ranks that repeat each other's work
///   along_same, along_same_filters, along_same_channels
///                   ranks that hold the same part of a parameter that layers share, if filters and
///                   channels split it, only channels, or only filters; along_all if nothing does
inline constexpr DimSet along_channels{Dim::C}, along_space{Dim::D, Dim::H, Dim::W},
    along_blocks{Dim::N, Dim::D, Dim::H, Dim::W},
    along_work{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W},
    along_all{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W, Dim::R}, along_replicas{Dim::R},
    along_same{Dim::N, Dim::D, Dim::H, Dim::W, Dim::R},
    along_same_filters{Dim::N, Dim::F, Dim::D, Dim::H, Dim::W, Dim::R},
    along_same_channels{Dim::N, Dim::C, Dim::D, Dim::H, Dim::W, Dim::R};
/// The sets that blocks of the network can communicate along: those above, those along which its
/// reductions add, and the samples alone for a loss with sums of each sample.
std::vector<DimSet> collective_dims_of(const Network& network);

/// A collective over all ranks that differ only along `dims` (of collective_dims_of). Along N, it
/// covers only `samples` consecutive blocks (0: all blocks).
struct BlockCollective {
  Collective op = Collective::AllReduce;
  DataType type = DataType::F32;
  Bytes bytes{};
  DimSet dims;
  int samples = 0;
  /// whether it sums a parameter's gradient, which can overlap with the backward phase
  bool gradient = false;
  /// number of times per iteration; it may be a fraction, since several layers can share a gradient
  /// bucket
  double times = 1;
};

/// The parts of a block's cost on one rank.
struct BlockPieces {
  Seconds forward{}, backward{}, update{};  ///< time of kernels and loads
  Tier tier = Tier::Measured;
  std::int64_t ops = 0;         ///< number of ops, collectives included
  Bytes persistent{}, saved{};  ///< as in LayerCost
  std::vector<BlockCollective> collectives;
};

class ClosedFormBlockCost {
 public:
  /// All arguments must outlive this object.
  ClosedFormBlockCost(const Network& network, const Block& block, const Execution& execution,
                      const MachineProfile& machine);

  /// The parts of the block's cost on one rank of the decomposition's grid. Rank 0 has the longest
  /// blocks. Requires that the decomposition is legal. Thread-safe.
  BlockPieces pieces(const Decomposition& root, int rank = 0) const;

 private:
  const Network& network_;
  const Block& block_;
  const Execution& execution_;
  const MachineProfile& machine_;
  const Recomputation recomputation_;
  const std::vector<DimSet> collective_dims_;
  /// by index in the block: whether consumers count the layer's output as their saved memory
  std::vector<bool> counted_;
};

}  // namespace stratplan
