#pragma once
// What blocks that share parameters must agree on: how each shared parameter is split over the
// ranks. A choice of such an agreement (search/agreement.hpp) is one way to split it.
#include <functional>
#include <vector>

#include "model/partition/shared_parameters.hpp"
#include "search/agreement.hpp"

namespace stratplan {

/// The candidates of all blocks. Both members take a block; `decomposition` takes one of its
/// candidates, and returns the decomposition of the block's root.
struct BlockCandidates {
  std::function<int(int)> count;
  std::function<Decomposition(int, int)> decomposition;
};

/// Returns one agreement per group of parameters that the same blocks share. Nodes are blocks.
std::vector<Agreement> agreements_between(const Network& network, const std::vector<Block>& blocks,
                                          const BlockCandidates& candidates);

/// Removes the candidates that split a shared parameter in a way that some other block cannot, and
/// returns the agreements of those that remain. `candidates`: by block.
std::vector<Agreement> keep_agreeable(const Network& network, const std::vector<Block>& blocks,
                                      std::vector<std::vector<Decomposition>>& candidates);

}  // namespace stratplan
