#pragma once
// Views: tensors of a model that hold a layer's output with its elements in another order.
// Exporters write shuffles of channels, sub-pixel convolutions and the like as chains of Reshape
// and Transpose. A view follows such a chain, until a node needs the elements in their new order.
// One layer then moves them.
//
// A factor is a part of one axis of the layer's output. A view lists factors in the order in which
// its elements lie, the slowest first.
//
// Worked table: a layer's output (N, 6, H, W), and what two chains make of it. C3:2 is the factor
// of C with extent 3 and stride 2.
//   chain                                            dims, by factors        layer that moves it
//   Reshape (N, 2, 3, H, W), Transpose (0,2,1,3,4),  (C3:1 C2:3) (H) (W)     channel_shuffle in
//   Reshape (N, 6, H, W)                                                     2 groups
//   Reshape (N, 3, 1, 2, H, W), Transpose            (C3:2) (H) (W C2:1)     depth_to_space, block
//   (0,1,4,2,5,3), Reshape (N, 3, H, 2 W)                                    [1, 2], CRD
#include <optional>
#include <vector>

#include "interop/onnx/constant.hpp"
#include "model/base/json/json.hpp"
#include "model/network/layer_kinds.hpp"

namespace stratplan::interop {

/// Positions of one axis: `extent` of them, `stride` apart.
struct Factor {
  Axis axis = Axis::C;
  std::int64_t extent = 1, stride = 1;
  friend bool operator==(const Factor&, const Factor&) = default;
};
using Factors = std::vector<Factor>;

/// Returns the factors of a layer's whole output in their usual order: C, D, H, W, or D, H, W, C if
/// the channels come last. Axes of extent 1 have no factor.
Factors whole_factors(const Shape& shape, bool channels_last);

/// Divides factors among the axes of a tensor with these extents, of which the first is that of the
/// samples and gets none. Splits factors where necessary. Returns nothing if an extent is no
/// product of neighbouring factors.
std::optional<std::vector<Factors>> factors_by_axis(const Factors& factors, const Extents& dims);

/// Returns the factors of all axes in one list. Joins neighbours that make up a longer factor.
Factors joined(const std::vector<Factors>& axes);

/// A layer that rearranges a layer's output.
struct RearrangingLayer {
  LayerKind kind;
  Json attributes;
  Shape output;
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< along D, H, W; {1, 1, 1} for a shuffle
};
/// Returns the layer that makes an image of a view of an output of shape `shape`: the factors
/// `channels` become the output's channels, and `positions` its positions along D, H and W. Returns
/// nothing if no layer does.
std::optional<RearrangingLayer> rearranging_layer(const Shape& shape, const Factors& channels,
                                                  const std::array<Factors, 3>& positions);

}  // namespace stratplan::interop
