#pragma once
// Fusion: layers of one block that one pass over memory does. Where a normalization's output goes
// into an addition and a ReLU and nowhere else, and all of them are split alike, none of what lies
// between is ever written: forward, the kernel that scales and shifts also adds and activates;
// backward, the normalization's kernels take the gradient through the activation as they read it,
// by the sign of what it made. Likewise a contraction and a ReLU: forward, the kernel that makes
// the output activates it; backward, the gradient of the bias and that of the activation are made
// in one pass.
#include <vector>

#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

///   head             add            activation
///   a normalization  of two inputs  ReLU, LeakyReLU  each of the two may be missing
///   a contraction    -              ReLU, LeakyReLU  unless its output comes of a sum over ranks
///                                                    and no bias is added behind that
///   any other layer  -              -                on its own
struct Fusion {
  LayerIndex head = -1;
  LayerIndex add = -1;
  LayerIndex activation = -1;

  /// The layer whose output is written.
  LayerIndex last() const { return activation >= 0 ? activation : add >= 0 ? add : head; }
  std::vector<LayerIndex> layers() const;
  friend bool operator==(const Fusion&, const Fusion&) = default;
};

/// A block's layers, each in exactly one fusion, in order. Layers are fused only where each has the
/// decomposition that it inherits.
std::vector<Fusion> fuse(const Network& network, const Block& block,
                         const std::vector<Decomposition>& decompositions,
                         const Execution& execution);

/// Of all blocks.
std::vector<Fusion> fuse_all(const Network& network, const LayerDecompositions& decompositions,
                             const Execution& execution);

/// Nothing for layers that no other's kernel can do.
std::optional<Activation> activation_of(const Layer& layer);

}  // namespace stratplan
