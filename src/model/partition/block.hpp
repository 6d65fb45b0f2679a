#pragma once
// Blocks: a layer and the point-wise layers behind it that share its output's distribution
// (convolution + normalization + activation, + addition). A plan assigns one decomposition to each
// block. A search's claim of optimality holds for this folding of layers into blocks.
#include <vector>

#include "model/partition/decomposition.hpp"

namespace stratplan {

struct Block {
  std::vector<LayerIndex> layers;  ///< the root first, then the folded ones in topological order
  LayerIndex root() const { return layers.front(); }
  LayerIndex last() const { return layers.back(); }
};

/// Returns the blocks of a network, in topological order of their roots. Every layer but the inputs
/// is in exactly one block. A point-wise layer joins the block that ends in its latest producer if
/// it is that producer's only consumer.
std::vector<Block> fold(const Network& network);

/// Returns the decompositions of a block's layers: the root's, then the one that each folded layer
/// inherits.
std::vector<Decomposition> spread(const Network& network, const Block& block,
                                  const Decomposition& root);

/// Returns the first rejection among the block's layers; nothing if all of them are legal.
std::optional<Rejection> check(const Network& network, const Block& block,
                               const Decomposition& root);

struct Candidates {
  std::vector<Decomposition> legal;  ///< decompositions of the root, distinct
  std::vector<Rejection> rejected;
};
/// Checks all decompositions of a block over all canonical grids of a topology. Both output layouts
/// are candidates if the root is a contraction with C parts.
Candidates candidates(const Network& network, const Block& block, const Topology& topology);

/// One decomposition per layer. Inputs have the empty one-rank grid, which is not used.
using LayerDecompositions = std::vector<Decomposition>;
/// Applies spread() to all blocks. `roots`: the decomposition of each block's root.
LayerDecompositions spread_all(const Network& network, const std::vector<Block>& blocks,
                               const std::vector<Decomposition>& roots);

}  // namespace stratplan
