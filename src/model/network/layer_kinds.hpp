#pragma once
// The kinds of layers: one row each, with name, attributes and what is true of every such layer.
//
// To add a kind, write an enumerator at the end and its row into layer_kinds, and put its name into
// the list of kinds of schemas/network.schema.json, its keys into read_network.cpp, its family into
// partition/layers/layer_family.cpp. The predicates below say what the traits mean.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "model/network/layer_attributes.hpp"

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

struct LayerTraits {
  bool convolution = false, contraction = false, window = false, fully_connected = false,
       labels = false, loss = false, statistics = false, batch_statistics = false,
       normalizes_each_channel = false, passes_shifts = false, passes_scales = false,
       joins_channels = false, places_inputs = false, joins = false, point_wise = false;
};

struct LayerKindRow {
  LayerKind kind;
  std::string_view name;       ///< in network.json; of Pointwise and Binary the function has it
  LayerAttributes attributes;  ///< as they are by default
  LayerTraits traits{};
};

inline constexpr std::array<LayerKindRow, layer_kind_count> layer_kinds = [] {
  using enum LayerKind;
  return std::array<LayerKindRow, layer_kind_count>{{
      {Input, "input", PlainLayer{}},
      {Convolution,
       "convolution",
       ConvolutionLayer{},
       {.convolution = true, .contraction = true, .window = true}},
      {MaxPool,
       "max_pool",
       PoolLayer{},
       {.window = true, .passes_shifts = true, .passes_scales = true}},
      {AveragePool, "average_pool", PoolLayer{}, {.window = true, .passes_scales = true}},
      {GlobalAveragePool,
       "global_average_pool",
       PlainLayer{},
       {.passes_shifts = true, .passes_scales = true}},
      {BatchNorm,
       "batch_norm",
       NormalizationLayer{},
       {.statistics = true,
        .batch_statistics = true,
        .normalizes_each_channel = true,
        .point_wise = true}},
      {Pointwise, "pointwise", Activation{}, {.point_wise = true}},
      {Add, "add", PlainLayer{}, {.passes_shifts = true, .joins = true, .point_wise = true}},
      {FullyConnected,
       "fully_connected",
       FullyConnectedLayer{},
       {.contraction = true, .fully_connected = true}},
      {Dropout, "dropout", DropoutLayer{}, {.passes_scales = true, .point_wise = true}},
      {SoftmaxCrossEntropy,
       "softmax_cross_entropy",
       PlainLayer{},
       {.labels = true, .loss = true, .joins_channels = true}},
      {MeanSquaredError, "mean_squared_error", PlainLayer{}, {.loss = true, .point_wise = true}},
      {PReLU, "prelu", PlainLayer{}, {.passes_scales = true, .point_wise = true}},
      {Softmax, "softmax", PlainLayer{}, {.joins_channels = true}},
      {LocalResponseNorm, "local_response_norm", LocalResponse{}, {.joins_channels = true}},
      {InstanceNorm,
       "instance_norm",
       NormalizationLayer{},
       {.statistics = true, .normalizes_each_channel = true, .point_wise = true}},
      {GroupNorm, "group_norm", NormalizationLayer{}, {.statistics = true}},
      {DiceLoss, "dice_loss", DiceLayer{}, {.labels = true, .loss = true, .joins_channels = true}},
      {Concat,
       "concat",
       PlainLayer{},
       {.passes_shifts = true, .passes_scales = true, .places_inputs = true, .joins = true}},
      {Pad, "pad", PadLayer{}, {.window = true, .passes_scales = true, .places_inputs = true}},
      {Upsample, "upsample", UpsampleLayer{}, {.passes_shifts = true, .passes_scales = true}},
      {TransposedConvolution,
       "transposed_convolution",
       ConvolutionLayer{},
       {.convolution = true, .contraction = true, .window = true}},
      {Binary, "binary", BinaryFunction{}, {.joins = true, .point_wise = true}},
  }};
}();
static_assert(std::ranges::all_of(layer_kinds, [](const LayerKindRow& row) {
  return &row == &layer_kinds[static_cast<std::size_t>(row.kind)];
}));

constexpr const LayerKindRow& row_of(LayerKind kind) {
  return layer_kinds[static_cast<std::size_t>(kind)];
}
constexpr const LayerTraits& traits_of(LayerKind kind) { return row_of(kind).traits; }
/// What layers of this kind have, as it is by default.
constexpr const LayerAttributes& attributes_of(LayerKind kind) { return row_of(kind).attributes; }

/// Slides a kernel of weights over its input, or over its output.
constexpr bool is_convolution(LayerKind kind) { return traits_of(kind).convolution; }
/// Sums over input channels, has weights (convolutions, FullyConnected).
constexpr bool is_contraction(LayerKind kind) { return traits_of(kind).contraction; }
/// Slides a window (convolutions, MaxPool, AveragePool); that of Pad has kernel 1.
constexpr bool has_window(LayerKind kind) { return traits_of(kind).window; }
/// Reads its whole input at each of its outputs.
constexpr bool is_fully_connected(LayerKind kind) { return traits_of(kind).fully_connected; }
/// Compares with one label per sample and position.
constexpr bool has_labels(LayerKind kind) { return traits_of(kind).labels; }
constexpr bool is_loss(LayerKind kind) { return traits_of(kind).loss; }
/// Normalizes by mean and variance, then scales and shifts each channel.
constexpr bool has_statistics(LayerKind kind) { return traits_of(kind).statistics; }
/// Normalizes by what other samples have, too; inference needs running statistics instead.
constexpr bool takes_batch_statistics(LayerKind kind) { return traits_of(kind).batch_statistics; }
/// Takes away what each channel of its input has been shifted by, and scaled.
constexpr bool normalizes_each_channel(LayerKind kind) {
  return traits_of(kind).normalizes_each_channel;
}
/// Shifts its output by what its input is shifted by, channel by channel.
constexpr bool passes_shifts(LayerKind kind) { return traits_of(kind).passes_shifts; }
/// Reads all channels of a position at once: they cannot be split.
constexpr bool joins_channels(LayerKind kind) { return traits_of(kind).joins_channels; }
/// Puts its inputs somewhere in its output, and zeros elsewhere (Concat, Pad).
constexpr bool places_inputs(LayerKind kind) { return traits_of(kind).places_inputs; }
/// Reads several producers: two (Binary), or any number from two on (Add, Concat).
constexpr bool joins(LayerKind kind) { return traits_of(kind).joins; }
/// Each output element needs just the elements at its own index of inputs that have the output's
/// shape (statistics of BatchNorm and InstanceNorm apart), however those are split. Not GroupNorm:
/// some splits of channels cut its groups.
constexpr bool is_point_wise(LayerKind kind) { return traits_of(kind).point_wise; }

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

}  // namespace stratplan
