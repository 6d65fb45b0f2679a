#pragma once
#include <functional>
// A block is a layer and the point-wise layers behind it that share its output's distribution, for
// example a convolution, a normalization, an addition and an activation function. A plan assigns
// one decomposition to each block. A search's claim of optimality holds for this folding of layers
// into blocks.
#include <vector>

#include "model/partition/decomposition.hpp"

namespace stratplan {

struct Block {
  std::vector<LayerIndex> layers;  ///< the root first, then the folded layers in topological order
  LayerIndex root() const { return layers.front(); }
  LayerIndex last() const { return layers.back(); }
};

/// Returns the blocks of a network, in topological order of their roots. Every layer but the inputs
/// is in exactly one block. A point-wise layer joins the block of its latest producer if the layer
/// is the producer's only consumer and both outputs have the same shape.
std::vector<Block> fold(const Network& network);

/// Returns the decompositions of a block's layers: the root's decomposition, then the decomposition
/// that each folded layer inherits.
std::vector<Decomposition> spread(const Network& network, const Block& block,
                                  const Decomposition& root);

/// Returns the first rejection among the block's layers; nothing if all decompositions are legal.
/// Parameters that blocks share are another matter (partition/shared_parameters.hpp).
std::optional<Rejection> check(const Network& network, const Block& block,
                               const Decomposition& root);

struct Candidates {
  std::vector<Decomposition> legal;  ///< decompositions of the root, distinct
  std::vector<Rejection> rejected;
};
/// Checks all decompositions of a block over all canonical grids of a topology. On a grid that
/// splits C, both output layouts are candidates if the root is a contraction with one group of
/// channels. Grids for which `wanted` returns false are left out.
Candidates candidates(
    const Network& network, const Block& block, const Topology& topology,
    const std::function<bool(const ProcessGrid&)>& wanted = [](const ProcessGrid&) {
      return true;
    });

/// One decomposition per layer of the network. Input layers have an unused one-rank grid.
using LayerDecompositions = std::vector<Decomposition>;
/// Applies spread() to all blocks. `roots`: the decomposition of each block's root.
LayerDecompositions spread_all(const Network& network, const std::vector<Block>& blocks,
                               const std::vector<Decomposition>& roots);

}  // namespace stratplan
