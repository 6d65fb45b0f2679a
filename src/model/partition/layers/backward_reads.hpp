#pragma once
// What the backward phase reads of what the forward phase made: it follows from the passes.
#include "model/network/network.hpp"

namespace stratplan {

struct BackwardReads {
  bool inputs = false;  ///< of the layer
  bool output = false;  ///< its own, or what it makes beside that (the places of maxima)
};

/// Of a layer that is on its own, not fused with others.
BackwardReads backward_reads(const Network& network, LayerIndex layer);

/// Whether some consumer's backward phase reads the layer's output to make its own gradients.
bool output_is_read_backward(const Network& network, LayerIndex layer);

}  // namespace stratplan
