#pragma once
// Blocks: a layer and the point-wise layers behind it that share its output's distribution
// (convolution + normalization + activation, + addition). Plans assign one decomposition to each
// block; what is folded is part of the optimality claim.
#include <vector>

#include "model/partition/decomposition.hpp"

namespace stratplan {

struct Block {
  std::vector<LayerIndex> layers;  ///< the root first, then the folded ones in topological order
  LayerIndex root() const { return layers.front(); }
  LayerIndex last() const { return layers.back(); }
};

/// Every layer but the inputs is in exactly one block. A point-wise layer joins the block that ends
/// in its latest producer if it is that producer's only consumer. Blocks are in topological order
/// of their roots.
std::vector<Block> fold(const Network& network);

/// The decompositions of a block's layers: the root's, then what each inherits.
std::vector<Decomposition> spread(const Network& network, const Block& block,
                                  const Decomposition& root);

/// The first rejection among the block's layers.
std::optional<Rejection> check(const Network& network, const Block& block,
                               const Decomposition& root);

struct Candidates {
  std::vector<Decomposition> legal;  ///< of the root; distinct
  std::vector<Rejection> rejected;
};
/// All decompositions of a block over all canonical grids of a topology, both landings where they
/// differ.
Candidates candidates(const Network& network, const Block& block, const Topology& topology);

/// One decomposition per layer (inputs get the empty one-rank grid, unused).
using LayerDecompositions = std::vector<Decomposition>;
LayerDecompositions spread_all(const Network& network, const std::vector<Block>& blocks,
                               const std::vector<Decomposition>& roots);

}  // namespace stratplan
