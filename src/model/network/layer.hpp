#pragma once
// A layer: an operation with its attributes and global shapes. A layer does not depend on ranks.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/json/fields.hpp"
#include "model/network/layer_kinds.hpp"
#include "model/network/parameter.hpp"
#include "model/network/shape.hpp"

namespace stratplan {

struct Layer {
  std::string name{};
  LayerKind kind = LayerKind::Input;
  /// The producers: none for Input, several for kinds with joins(), one for all other kinds.
  std::vector<LayerIndex> inputs{};
  LayerAttributes attributes = attributes_of(kind);  ///< holds the struct that the kind requires
  /// by ParameterRole: index into Network::parameters; -1 for a parameter that is not declared
  std::array<ParameterIndex, parameter_role_names.size()> declared{-1, -1, -1, -1, -1, -1};
  int running = -1;        ///< index into Network::running; -1 if the names are not declared
  double loss_weight = 1;  ///< of a loss: its factor in the sum of losses that training lowers

  Shape input{};                      ///< the first producer's output; equal to `output` for Input
  std::vector<Shape> input_shapes{};  ///< each producer's output for Concat, Binary; else empty
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
  const Windows& windows() const;  ///< own in kinds with has_window(), else kernels of 1
  /// The maps of an Upsample, of a DepthToSpace, or of a Pad that adds elements of its input; else
  /// identities.
  std::array<Scale, 3> scales() const;
  std::int64_t filters() const;  ///< own in contractions, else 0
  bool bias() const;             ///< own in contractions, else false
  std::int64_t groups() const;   ///< own in kinds with groups, else 1

  /// The options of a loss that has a cross-entropy or a Dice loss in it; null for all other kinds.
  const CrossEntropyLayer* cross_entropy() const;
  const DiceLayer* dice() const;
  /// Returns whether this is a loss that divides by sums over the whole batch. Micro-batches cannot
  /// cut such a loss.
  bool sums_whole_batch() const;
  /// The label that does not count in a loss; nothing if all labels do.
  std::optional<std::int64_t> ignored_label() const;

  LayerType type() const;
  bool is_data() const { return kind == LayerKind::Input; }
  /// The number of terms of the longest sum that computes an element of the output, the input's
  /// gradient or a parameter's gradient. Pooling returns 1, because its windows are small or its
  /// sums are taken in double.
  double longest_sum() const;
  /// Whether every output channel sums over all input channels: a contraction with one group. In
  /// all other layers, F and C split the same channels.
  bool mixes_channels() const { return is_contraction(kind) && groups() == 1; }
  /// Whether the layer is a contraction in which each group of filters reads its own channels.
  bool contracts_in_groups() const { return is_contraction(kind) && groups() > 1; }
  /// Shape of the weights: (F, C / groups, kD, kH, kW) in the places of N, C, D, H, W. All extents
  /// are zero if the layer has no weights. A transposed convolution has the weights of the
  /// convolution whose gradient it computes: (C, F / groups, kD, kH, kW).
  Shape weights() const;
  /// Shape of the output of producer number `input`.
  Shape input_shape(std::size_t input) const;
  /// Whether the axis has extent 1 in the output, because the layer computes one element from all
  /// elements along the axis (GlobalAveragePool, Reduce).
  bool reduces(Axis axis) const;
  /// Whether output elements are elements of the input, or mixes of them, that scales() selects:
  /// Upsample, and a Pad that repeats or reflects the ends. A Pad that wraps around is none, since
  /// its input arrives with the elements from the other end.
  bool resamples() const;
  /// Whether Binary reads each element of an input at several positions along an axis.
  bool repeats(std::size_t which, Axis axis) const {
    return kind == LayerKind::Binary && input_shape(which)[axis] < output[axis];
  }
  /// Returns the position in the output to which an input's first element is copied. Concat puts it
  /// behind the channels of earlier producers, and Pad behind the padding. Requires a kind with
  /// places_inputs().
  std::array<std::int64_t, axis_count> origin(std::size_t input) const;
  /// The number of products in the sum of one output element, away from the borders. For a
  /// transposed convolution, this is the average over output elements. Requires a contraction.
  double fan_in() const;
  /// Returns the layer's parameters and their shapes: weights and bias, or scale and shift, or
  /// slopes, or weights of classes. A normalization always has both scale and shift (see
  /// is_implied).
  std::vector<std::pair<ParameterRole, Shape>> parameters() const;
  /// Whether a parameter is the constant 1 or 0 that takes the place of a missing scale or shift.
  bool is_implied(ParameterRole role) const;
  /// The number of elements of all parameters() but the implied ones.
  std::int64_t parameter_count() const;
  /// Whether the layer normalizes by running statistics in training too.
  bool normalizes_by_running() const {
    return kind == LayerKind::BatchNorm &&
           as<NormalizationLayer>().statistics == NormalizedBy::Running;
  }
  /// Floating-point operations of the forward passes, over the samples of `output`. A multiply-add
  /// counts as two. Layers other than contractions return zero, because memory bandwidth bounds
  /// them.
  Flops forward_flops() const;

  static constexpr auto fields() {
    using L = Layer;
    return std::tuple(Field{"name", &L::name}, Field{"kind", &L::kind}, Field{"inputs", &L::inputs},
                      Field{"attributes", &L::attributes}, Field{"declared", &L::declared},
                      Field{"running", &L::running}, Field{"loss_weight", &L::loss_weight},
                      Field{"input", &L::input}, Field{"input_shapes", &L::input_shapes},
                      Field{"output", &L::output});
  }

 private:
  [[noreturn]] void has_other_attributes() const;
};

}  // namespace stratplan
