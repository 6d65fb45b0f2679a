#pragma once
// A fusion: layers of one block that are computed together, in one sweep over memory. A
// normalization, an addition and a ReLU are fused if their intermediate results have no other
// reader and all are split alike. Then no intermediate result is written. In the forward phase, the
// normalization's last kernel also does the addition and the activation. In the backward phase, the
// normalization's kernels apply the activation's derivative while they read the gradient. The sign
// of the activation's output determines the derivative. A contraction and a ReLU are fused
// likewise. In the forward phase, the kernel that writes the output also applies the ReLU. In the
// backward phase, one kernel makes the gradients of the bias and of the activation's input.
#include <vector>

#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// The layers that are computed together. An index of -1 means that the fusion has no such layer.
///   head             add            activation       condition for the fusion
///   a normalization  of two inputs  ReLU, LeakyReLU  none; `add` or `activation` may be missing
///   a contraction    -              ReLU, LeakyReLU  the contraction has a bias; or it is not
///                                                    transposed, and its output is not summed over
///                                                    ranks
///   any other layer  -              -                the layer is not fused
struct Fusion {
  LayerIndex head = -1;
  LayerIndex add = -1;
  LayerIndex activation = -1;

  /// The layer whose output is written.
  LayerIndex last() const { return activation >= 0 ? activation : add >= 0 ? add : head; }
  std::vector<LayerIndex> layers() const;
  friend bool operator==(const Fusion&, const Fusion&) = default;
};

/// Returns the fusions of a block in order. Each layer is in exactly one fusion. A layer joins a
/// fusion only if its decomposition is the one that it inherits from the layer before it.
/// `decompositions`: one per layer of the block.
std::vector<Fusion> fuse(const Network& network, const Block& block,
                         const std::vector<Decomposition>& decompositions,
                         const Execution& execution);

/// Returns the fusions of all blocks. `decompositions`: one per layer of the network.
std::vector<Fusion> fuse_all(const Network& network, const LayerDecompositions& decompositions,
                             const Execution& execution);

/// Returns the layer's activation if another layer's kernel can apply the activation; otherwise
/// nothing.
std::optional<Activation> activation_of(const Layer& layer);

}  // namespace stratplan
