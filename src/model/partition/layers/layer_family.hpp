#pragma once
// Layer families: what partition must know of a kind of layer, in one file each (layers/).
#include "model/partition/layers/site.hpp"

namespace stratplan {

/// A dimension that a layer cannot be split along as it is.
struct Illegal {
  Dim dim = Dim::R;
  std::string reason;
};

/// Functions of the layers of some kinds. A site's head is of the family.
struct LayerFamily {
  /// Why a layer cannot be split along `dim` at all, or not into so many parts; nothing if it can.
  /// The grid has more than one.
  std::optional<std::string> (*why_not)(const Layer& layer, Dim dim, const ProcessGrid& grid);
  LayerDistributions (*distribute)(const Layer& layer, const Decomposition& decomposition);
  /// The passes of one micro-batch. Backward those of a fusion whose output's gradient is there, of
  /// a loss those of its own.
  void (*forward)(const Site& site, PassSink& passes);
  void (*backward)(const Site& site, PassSink& passes);
  /// Where every rank has work: what blocks must not cut. Optional.
  std::optional<Illegal> (*first_cut)(const Layer& layer,
                                      const Decomposition& decomposition) = nullptr;
};

/// Requires any kind but Input.
const LayerFamily& family_of(LayerKind kind);

namespace layers {

extern const LayerFamily contraction, normalization, pooling, pointwise, prelu, dropout,
    across_channels, addition, binary, placement, loss;

}  // namespace layers

}  // namespace stratplan
