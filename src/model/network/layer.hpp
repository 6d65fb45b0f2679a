#pragma once
// A layer: an operation with its attributes and global shapes. It knows nothing of ranks.
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
  /// Producers; Input has none, what joins() several, all others one.
  std::vector<LayerIndex> inputs{};
  LayerAttributes attributes = attributes_of(kind);  ///< the alternative is the kind's

  Shape input{};                      ///< of the first producer; of Input: the same as output
  std::vector<Shape> input_shapes{};  ///< Concat, Binary: of each producer
  Shape output{};                     ///< of a loss: the input's shape (its gradient's home)

  /// The attributes, which must be of this type.
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
  // What several families have, and what stands for it in the others.
  const Windows& windows() const;              ///< what has_window(); else those that do nothing
  const std::array<Scale, 3>& scales() const;  ///< Upsample; else those that do nothing
  std::int64_t filters() const;                ///< contractions; else 0
  bool bias() const;                           ///< contractions; else false
  std::int64_t groups() const;                 ///< convolutions, normalizations; else 1

  LayerType type() const;
  bool is_data() const { return kind == LayerKind::Input; }
  /// Each channel of the output is of one channel of the input, and proportional to it.
  bool passes_scales() const;
  /// Terms of the longest sum among output, input gradient and parameter gradients.
  double longest_sum() const;
  /// Every output channel is a sum over all input channels: a contraction of one group. Where not,
  /// F and C split the same thing.
  bool mixes_channels() const { return is_contraction(kind) && groups() == 1; }
  /// A contraction whose filters read their own group of channels each.
  bool contracts_in_groups() const { return is_contraction(kind) && groups() > 1; }
  /// Shape of the weights, (F, C / groups, kD, kH, kW) in the places of N, C, D, H, W; zero
  /// elements if the layer has none. Those of a transposed convolution are those of the convolution
  /// whose gradient it is: (C, F / groups, kD, kH, kW).
  Shape weights() const;
  /// Shape of what the input-th producer makes.
  Shape input_shape(std::size_t input) const;
  /// Whether an input of Binary is read at several places along an axis.
  bool repeats(std::size_t which, Axis axis) const {
    return kind == LayerKind::Binary && input_shape(which)[axis] < output[axis];
  }
  /// Where its first element lies in the output of a layer that places its inputs: behind the
  /// channels of the producers before it, or behind padding.
  std::array<std::int64_t, axis_count> origin(std::size_t input) const;
  /// Products that are added up to one output element, away from the borders; of a transposed
  /// convolution: on average.
  double fan_in() const;
  /// Trainable parameters: weights and bias, or scale and shift, or slopes.
  std::int64_t parameter_count() const;
  /// Forward operations over the whole batch; a multiply-add counts as two. Contractions only: the
  /// rest is bound by memory.
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
