#pragma once
// Tells which tensors of the forward phase a layer reads in its backward phase. The answer follows
// from the layer's passes.
#include "model/network/network.hpp"

namespace stratplan {

struct BackwardReads {
  bool inputs = false;  ///< the layer's inputs
  /// the layer's output, or another tensor that its forward passes make and that recomputation
  /// would make again (the places of maxima)
  bool output = false;
};

/// Returns which tensors the layer's backward passes read if the layer is not fused with others.
BackwardReads backward_reads(const Network& network, LayerIndex layer);

/// Whether some consumer's backward phase reads the layer's output to make the consumer's
/// gradients.
bool output_is_read_backward(const Network& network, LayerIndex layer);

}  // namespace stratplan
