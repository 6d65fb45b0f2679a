#pragma once
// Layer families: what partition must know of a kind of layer, in one file each (layers/).
#include "model/partition/site.hpp"

namespace stratplan {

/// Functions of the layers of some kinds. A site's head is of the family.
struct LayerFamily {
  /// The passes of one micro-batch. Backward those of a fusion whose output's gradient is there, of
  /// a loss those of its own.
  void (*forward)(const Site& site, PassSink& passes);
  void (*backward)(const Site& site, PassSink& passes);
};

/// Requires any kind but Input.
const LayerFamily& family_of(LayerKind kind);

namespace layers {

extern const LayerFamily contraction, normalization, pooling, pointwise, prelu, dropout,
    across_channels, addition, placement, loss;

}  // namespace layers

}  // namespace stratplan
