#pragma once
// Fusion: layers of one block that one pass over memory computes. A normalization, an addition and
// a ReLU are fused if their intermediate results have no other reader and all are split alike. Then
// no intermediate result is written. Forward, the kernel that scales and shifts also adds and
// activates. Backward, the normalization's kernels apply the activation's derivative while they
// read the gradient. The sign of the activation's output determines the derivative. A contraction
// and a ReLU are fused likewise. Forward, the kernel that writes the output also applies the ReLU.
// Backward, one pass makes the gradients of the bias and of the activation.
#include <vector>

#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// The layers that one pass computes. -1: the fusion has no such layer.
///   head             add            activation       condition
///   a normalization  of two inputs  ReLU, LeakyReLU  add or activation may be missing
///   a contraction    -              ReLU, LeakyReLU  a bias is added; or the layer is not
///                                                    transposed, and its output is no sum over
///                                                    ranks
///   any other layer  -              -                not fused
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
/// fusion only if it has the decomposition that it inherits. `decompositions`: by layer of the
/// block.
std::vector<Fusion> fuse(const Network& network, const Block& block,
                         const std::vector<Decomposition>& decompositions,
                         const Execution& execution);

/// Returns the fusions of all blocks. `decompositions`: by layer of the network.
std::vector<Fusion> fuse_all(const Network& network, const LayerDecompositions& decompositions,
                             const Execution& execution);

/// Returns the layer's activation if another layer's kernel can apply the activation; otherwise
/// nothing.
std::optional<Activation> activation_of(const Layer& layer);

}  // namespace stratplan
