#pragma once
// Layer families. A family defines, for each of its kinds of layers, the legal splits, the
// distributions of tensors, and the passes. Similar families share a file of this folder.
#include "model/partition/layers/site.hpp"

namespace stratplan {

/// A dimension of a grid along which a layer cannot be split, and why.
struct Illegal {
  Dim dim = Dim::R;
  std::string reason;
};

/// The functions of one family. A Site that is passed to them must have a head that belongs to the
/// family.
struct LayerFamily {
  /// Returns why a layer cannot be split along `dim` into as many parts as `grid` has. Returns
  /// nothing if this split is legal. Requires that the grid has more than one part along `dim`.
  std::optional<std::string> (*why_not)(const Layer& layer, Dim dim, const ProcessGrid& grid);
  /// Returns the distributions of the layer's tensors. Leaves Distribution::ranks unset.
  LayerDistributions (*distribute)(const Layer& layer, const Decomposition& decomposition);
  /// Adds the forward passes of one micro-batch.
  void (*forward)(const Site& site, PassSink& passes);
  /// Adds the backward passes of one micro-batch. The gradient of the fusion's output must exist,
  /// unless the head is a loss.
  void (*backward)(const Site& site, PassSink& passes);
  /// Optional. Returns the first dimension along which a block border cuts an indivisible unit (a
  /// group of channels). Returns nothing if there is none. Requires that every rank has work.
  std::optional<Illegal> (*first_cut)(const Layer& layer,
                                      const Decomposition& decomposition) = nullptr;
};

/// Returns the family of a kind of layer. Requires a kind other than Input.
const LayerFamily& family_of(LayerKind kind);

namespace layers {

extern const LayerFamily contraction, normalization, layer_norm, pooling, pointwise, prelu, dropout,
    across_channels, addition, binary, placement, rearrangement, loss;

}  // namespace layers

}  // namespace stratplan
