#pragma once
// A layer: an operation with its attributes and global shapes. A layer does not depend on ranks.
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/json/fields.hpp"
#include "model/network/layer_kinds.hpp"
#include "model/network/shape.hpp"

namespace stratplan {

using LayerIndex = int;

struct Layer {
  std::string name{};
  LayerKind kind = LayerKind::Input;
  /// Producers: none for Input, several for kinds with joins(), one for all other kinds.
  std::vector<LayerIndex> inputs{};
  LayerAttributes attributes = attributes_of(kind);  ///< holds the struct that the kind requires

  Shape input{};                      ///< the first producer's output; for Input equal to `output`
  std::vector<Shape> input_shapes{};  ///< Concat, Binary: the output of each producer; else empty
  Shape output{};                     ///< for a loss, the shape of its input's gradient

  /// Returns the attributes, which must be of this type.
  template <class Attributes>
  const Attributes& as() const {
    const auto* held = std::get_if<Attributes>(&attributes);
    if (!held) has_other_attributes();
    return *held;
  }
  template <class Attributes>
  Attributes& as() {
    return const_cast<Attributes&>(std::as_const(*this).as<Attributes>());
  }
  // Attributes that several families have. Kinds without the attribute return a neutral value.
  const Windows& windows() const;              ///< kinds with has_window(); else kernels of 1
  const std::array<Scale, 3>& scales() const;  ///< Upsample; else factors of 1
  std::int64_t filters() const;                ///< contractions; else 0
  bool bias() const;                           ///< contractions; else false
  std::int64_t groups() const;                 ///< convolutions, normalizations; else 1

  LayerType type() const;
  bool is_data() const { return kind == LayerKind::Input; }
  /// Whether each output channel depends on one input channel alone, and a positive factor on that
  /// input channel multiplies the output channel too. A bias is disregarded.
  bool passes_scales() const;
  /// The number of terms of the longest sum in output, input gradient and parameter gradients.
  /// Windows without parameters count as 1: they are small, or their sums are taken in double.
  double longest_sum() const;
  /// Whether every output channel sums over all input channels: a contraction with one group. In
  /// all other layers, F and C split the same channels.
  bool mixes_channels() const { return is_contraction(kind) && groups() == 1; }
  /// Whether the layer is a contraction in which each group of filters reads its own channels.
  bool contracts_in_groups() const { return is_contraction(kind) && groups() > 1; }
  /// Shape of the weights, (F, C / groups, kD, kH, kW) in the places of N, C, D, H, W; zero
  /// elements if the layer has none. A transposed convolution has the weights of the convolution
  /// whose gradient it is: (C, F / groups, kD, kH, kW).
  Shape weights() const;
  /// Shape of the input-th producer's output.
  Shape input_shape(std::size_t input) const;
  /// Whether Binary reads each element of an input at several positions along an axis.
  bool repeats(std::size_t which, Axis axis) const {
    return kind == LayerKind::Binary && input_shape(which)[axis] < output[axis];
  }
  /// Position in the output of an input's first element, for kinds with places_inputs(): behind the
  /// channels of the producers before it (Concat), or behind the padding (Pad).
  std::array<std::int64_t, axis_count> origin(std::size_t input) const;
  /// The number of products in the sum of one output element, away from the borders. For a
  /// transposed convolution the average over output elements. Requires a contraction.
  double fan_in() const;
  /// The number of trainable parameters: weights and bias, or scale and shift, or slopes.
  std::int64_t parameter_count() const;
  /// Forward operations over the samples of `output`; a multiply-add counts as two. Zero except for
  /// contractions, because memory bandwidth bounds all other layers.
  Flops forward_flops() const;

  static constexpr auto fields() {
    using L = Layer;
    return std::tuple(Field{"name", &L::name}, Field{"kind", &L::kind}, Field{"inputs", &L::inputs},
                      Field{"attributes", &L::attributes}, Field{"input", &L::input},
                      Field{"input_shapes", &L::input_shapes}, Field{"output", &L::output});
  }

 private:
  [[noreturn]] void has_other_attributes() const;
};

}  // namespace stratplan
