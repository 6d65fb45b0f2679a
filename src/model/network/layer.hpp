#pragma once
// A layer: an operation with its attributes and global shapes. It knows nothing of ranks.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/binary.hpp"
#include "model/network/local_response.hpp"
#include "model/network/pointwise.hpp"
#include "model/network/scale.hpp"
#include "model/network/shape.hpp"
#include "model/network/window.hpp"

namespace stratplan {

enum class LayerKind : int {
  Input,
  Convolution,
  MaxPool,
  AveragePool,
  GlobalAveragePool,
  BatchNorm,
  Pointwise,
  Add,
  FullyConnected,
  Dropout,
  SoftmaxCrossEntropy,
  MeanSquaredError,
  PReLU,
  Softmax,
  LocalResponseNorm,
  InstanceNorm,
  GroupNorm,
  DiceLoss,
  Concat,
  Pad,
  Upsample,
  TransposedConvolution,
  Binary,
};

inline constexpr int layer_kind_count = static_cast<int>(LayerKind::Binary) + 1;

/// What network.json calls a kind of layer: a LayerKind, or a function of one tensor or of two.
struct LayerType {
  LayerKind kind = LayerKind::Input;
  PointwiseFunction function = {};  ///< of LayerKind::Pointwise
  BinaryFunction binary = {};       ///< of LayerKind::Binary

  constexpr LayerType() = default;
  constexpr LayerType(LayerKind layer_kind) : kind(layer_kind) {}
  constexpr LayerType(PointwiseFunction pointwise)
      : kind(LayerKind::Pointwise), function(pointwise) {}
  constexpr LayerType(BinaryFunction of_two) : kind(LayerKind::Binary), binary(of_two) {}
  friend constexpr bool operator==(const LayerType&, const LayerType&) = default;
};
/// In the order of LayerKind.
std::span<const LayerType> all_layer_types();
/// The spelling in network.json: "convolution", "relu", ...
std::string_view name_of(LayerType type);

/// Slides a kernel of weights over its input, or over its output.
constexpr bool is_convolution(LayerKind kind) {
  return kind == LayerKind::Convolution || kind == LayerKind::TransposedConvolution;
}
/// Sums over input channels, has weights (convolutions, FullyConnected).
constexpr bool is_contraction(LayerKind kind) {
  return is_convolution(kind) || kind == LayerKind::FullyConnected;
}
/// Slides a window (convolutions, MaxPool, AveragePool); that of Pad has kernel 1.
constexpr bool has_window(LayerKind kind) {
  return is_convolution(kind) || kind == LayerKind::MaxPool || kind == LayerKind::AveragePool ||
         kind == LayerKind::Pad;
}
/// Reads its whole input at each of its outputs.
constexpr bool is_fully_connected(LayerKind kind) { return kind == LayerKind::FullyConnected; }
/// Compares with one label per sample and position.
constexpr bool has_labels(LayerKind kind) {
  return kind == LayerKind::SoftmaxCrossEntropy || kind == LayerKind::DiceLoss;
}
constexpr bool is_loss(LayerKind kind) {
  return has_labels(kind) || kind == LayerKind::MeanSquaredError;
}
/// Normalizes by mean and variance, then scales and shifts each channel.
constexpr bool has_statistics(LayerKind kind) {
  return kind == LayerKind::BatchNorm || kind == LayerKind::InstanceNorm ||
         kind == LayerKind::GroupNorm;
}
/// Normalizes by what other samples have, too; inference needs running statistics instead.
constexpr bool takes_batch_statistics(LayerKind kind) { return kind == LayerKind::BatchNorm; }
/// Takes away what each channel of its input has been shifted by, and scaled.
constexpr bool normalizes_each_channel(LayerKind kind) {
  return kind == LayerKind::BatchNorm || kind == LayerKind::InstanceNorm;
}
/// Shifts its output by what its input is shifted by, channel by channel.
constexpr bool passes_shifts(LayerKind kind) {
  return kind == LayerKind::MaxPool || kind == LayerKind::GlobalAveragePool ||
         kind == LayerKind::Upsample || kind == LayerKind::Add || kind == LayerKind::Concat;
}
/// Reads all channels of a position at once: they cannot be split.
constexpr bool joins_channels(LayerKind kind) {
  return has_labels(kind) || kind == LayerKind::Softmax || kind == LayerKind::LocalResponseNorm;
}
/// Puts its inputs somewhere in its output, and zeros elsewhere (Concat, Pad).
constexpr bool places_inputs(LayerKind kind) {
  return kind == LayerKind::Concat || kind == LayerKind::Pad;
}
/// Reads several producers: two (Binary), or any number from two on (Add, Concat).
constexpr bool joins(LayerKind kind) {
  return kind == LayerKind::Add || kind == LayerKind::Concat || kind == LayerKind::Binary;
}
/// Each output element needs just the elements at its own index of inputs that have the output's
/// shape (statistics of BatchNorm and InstanceNorm apart), however those are split. Not GroupNorm:
/// some splits of channels cut its groups.
constexpr bool is_point_wise(LayerKind kind) {
  return kind == LayerKind::BatchNorm || kind == LayerKind::Pointwise || kind == LayerKind::Add ||
         kind == LayerKind::Dropout || kind == LayerKind::MeanSquaredError ||
         kind == LayerKind::PReLU || kind == LayerKind::InstanceNorm || kind == LayerKind::Binary;
}

using LayerIndex = int;

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::Input;
  std::vector<LayerIndex>
      inputs;  ///< producers; Input has none, what joins() several, all others one

  std::array<Window, 3>
      windows{};  ///< convolutions, MaxPool, AveragePool, Pad: along D, H, W; a transposed convolution's slide over its output
  std::array<Scale, 3> scales{};  ///< Upsample: along D, H, W
  std::int64_t filters = 0;       ///< convolutions, FullyConnected: F
  bool bias = false;              ///< convolutions, FullyConnected
  bool count_padding = true;      ///< AveragePool: whether padded zeros count in the divisor
  double epsilon =
      1e-5;  ///< BatchNorm, InstanceNorm, GroupNorm: added to the variance; DiceLoss: to numerator and denominator
  Activation pointwise;      ///< Pointwise
  BinaryFunction binary{};   ///< Binary
  double probability = 0.5;  ///< Dropout: of an element being dropped

  Shape input;                      ///< of the first producer; of Input: the same as output
  std::vector<Shape> input_shapes;  ///< Concat, Binary: of each producer
  Shape output;                     ///< of a loss: the input's shape (its gradient's home)

  std::int64_t groups =
      1;  ///< convolutions: each group of F / groups filters reads its own C / groups channels; GroupNorm: of channels
  std::array<std::int64_t, 3>
      output_padding{};    ///< TransposedConvolution: rows of output more, along D, H, W
  LocalResponse response;  ///< LocalResponseNorm

  LayerType type() const {
    if (kind == LayerKind::Binary) return binary;
    return kind == LayerKind::Pointwise ? LayerType(pointwise.function) : LayerType(kind);
  }
  bool is_data() const { return kind == LayerKind::Input; }
  /// Each channel of the output is of one channel of the input, and proportional to it.
  bool passes_scales() const;
  /// Terms of the longest sum among output, input gradient and parameter gradients.
  double longest_sum() const;
  /// Every output channel is a sum over all input channels: a contraction of one group. Where not, F and C split the same thing.
  bool mixes_channels() const { return is_contraction(kind) && groups == 1; }
  /// A contraction whose filters read their own group of channels each.
  bool contracts_in_groups() const { return is_contraction(kind) && groups > 1; }
  /// Shape of the weights, (F, C / groups, kD, kH, kW) in the places of N, C, D, H, W; zero elements if the layer has none. Those of a transposed
  /// convolution are those of the convolution whose gradient it is: (C, F / groups, kD, kH, kW).
  Shape weights() const;
  /// Shape of what the input-th producer makes.
  Shape input_shape(std::size_t input) const;
  /// Whether an input of Binary is read at several places along an axis.
  bool repeats(std::size_t which, Axis axis) const {
    return kind == LayerKind::Binary && input_shape(which)[axis] < output[axis];
  }
  /// Where its first element lies in the output of a layer that places its inputs: behind the channels of the producers before it, or behind padding.
  std::array<std::int64_t, axis_count> origin(std::size_t input) const;
  /// Products that are added up to one output element, away from the borders; of a transposed convolution: on average.
  double fan_in() const;
  /// Trainable parameters: weights and bias, or scale and shift, or slopes.
  std::int64_t parameter_count() const;
  /// Forward operations over the whole batch; a multiply-add counts as two. Contractions only: the rest is bound by memory.
  Flops forward_flops() const;
};

}  // namespace stratplan
