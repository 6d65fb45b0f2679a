#pragma once
// Layer families: for each kind of layer, the legal splits, the distributions of tensors, and the
// passes. A file of this folder defines one family, or several similar ones.
#include "model/partition/layers/site.hpp"

namespace stratplan {

/// A dimension of a grid along which a layer cannot be split, and why.
struct Illegal {
  Dim dim = Dim::R;
  std::string reason;
};

/// The functions for the layer kinds of one family. A site that is passed to them must have a head
/// of the family.
struct LayerFamily {
  /// Returns why a layer cannot be split along `dim` into as many parts as `grid` has; nothing if
  /// it can. Requires that the grid has more than one part along `dim`.
  std::optional<std::string> (*why_not)(const Layer& layer, Dim dim, const ProcessGrid& grid);
  /// Returns the distributions of the layer's tensors. Their `ranks` are not set.
  LayerDistributions (*distribute)(const Layer& layer, const Decomposition& decomposition);
  /// Adds the forward passes of one micro-batch.
  void (*forward)(const Site& site, PassSink& passes);
  /// Adds the backward passes of one micro-batch. The gradient of the fusion's output must exist,
  /// unless the head is a loss.
  void (*backward)(const Site& site, PassSink& passes);
  /// Optional. Returns the first dimension whose block borders cut an indivisible unit (a group of
  /// channels); nothing if no border does. Requires that every rank has work.
  std::optional<Illegal> (*first_cut)(const Layer& layer,
                                      const Decomposition& decomposition) = nullptr;
};

/// Returns the family of a kind of layer. Requires a kind other than Input.
const LayerFamily& family_of(LayerKind kind);

namespace layers {

extern const LayerFamily contraction, normalization, pooling, pointwise, prelu, dropout,
    across_channels, addition, binary, placement, loss;

}  // namespace layers

}  // namespace stratplan
