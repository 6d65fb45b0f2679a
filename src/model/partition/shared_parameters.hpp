#pragma once
// Parameters that several layers read. On each rank, all of these layers must hold the same part of
// the parameter. This couples blocks that no tensor connects.
#include <optional>
#include <string>
#include <vector>

#include "model/partition/block.hpp"

namespace stratplan {

/// Returns why layers that share a parameter cannot have these decompositions: each rank must hold
/// the same part of the parameter for all of them. `decompositions`: by layer.
std::optional<Rejection> check_shared(const Network& network,
                                      const LayerDecompositions& decompositions);

/// A layer's parameter.
struct ParameterUse {
  LayerIndex layer = -1;
  ParameterRole role{};
};

/// Parameters that are shared by the same blocks.
struct SharedParameters {
  struct User {
    int block = -1;
    std::vector<ParameterUse> uses;  ///< for each of the parameters, one layer of the block
  };
  std::string name;  ///< of one of the parameters
  std::vector<User> users;
};

/// Returns the parameters that several blocks share, grouped by the blocks that share them.
std::vector<SharedParameters> shared_between(const Network& network,
                                             const std::vector<Block>& blocks);

/// Which part of each parameter each rank holds: by parameter, then by rank.
using ParameterParts = std::vector<Region>;
/// Returns the parts under a decomposition of the block's root.
ParameterParts parts_of(const Network& network, const Block& block,
                        const std::vector<ParameterUse>& uses, const Decomposition& root);

}  // namespace stratplan
