#pragma once
// The table of layer kinds. Each row has a kind's name, its default attributes, and traits that
// hold for every layer of the kind. The predicates below say what each trait means.
//
// To add a kind, follow "Adding a layer kind" in CONTRIBUTING.md.
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
  ElementwiseLoss,
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
  LayerNorm,
  Reduce,
  ChannelShuffle,
  DepthToSpace,
  SpaceToDepth,
  DiceCrossEntropy,
};
inline constexpr int layer_kind_count = static_cast<int>(LayerKind::DiceCrossEntropy) + 1;

struct LayerTraits {
  bool convolution = false, contraction = false, window = false, fully_connected = false,
       labels = false, loss = false, statistics = false, batch_statistics = false,
       joins_channels = false, places_inputs = false, joins = false, point_wise = false;
};

struct LayerKindRow {
  LayerKind kind;
  std::string_view name;       ///< in network.json, except for Pointwise, Binary, ElementwiseLoss
  LayerAttributes attributes;  ///< default attributes of the kind's layers
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
      {MaxPool, "max_pool", PoolLayer{}, {.window = true}},
      {AveragePool, "average_pool", PoolLayer{}, {.window = true}},
      {GlobalAveragePool, "global_average_pool", PlainLayer{}},
      {BatchNorm,
       "batch_norm",
       NormalizationLayer{},
       {.statistics = true, .batch_statistics = true, .point_wise = true}},
      {Pointwise, "pointwise", Activation{}, {.point_wise = true}},
      {Add, "add", PlainLayer{}, {.joins = true, .point_wise = true}},
      {FullyConnected,
       "fully_connected",
       FullyConnectedLayer{},
       {.contraction = true, .fully_connected = true}},
      {Dropout, "dropout", DropoutLayer{}, {.point_wise = true}},
      {SoftmaxCrossEntropy,
       "softmax_cross_entropy",
       CrossEntropyLayer{},
       {.labels = true, .loss = true, .joins_channels = true}},
      {ElementwiseLoss, "elementwise_loss", ElementLoss{}, {.loss = true, .point_wise = true}},
      {PReLU, "prelu", PReluLayer{}, {.point_wise = true}},
      {Softmax, "softmax", PlainLayer{}, {.joins_channels = true}},
      {LocalResponseNorm, "local_response_norm", LocalResponse{}, {.joins_channels = true}},
      {InstanceNorm,
       "instance_norm",
       NormalizationLayer{},
       {.statistics = true, .point_wise = true}},
      {GroupNorm, "group_norm", NormalizationLayer{}, {.statistics = true}},
      {DiceLoss, "dice_loss", DiceLayer{}, {.labels = true, .loss = true, .joins_channels = true}},
      {Concat, "concat", PlainLayer{}, {.places_inputs = true, .joins = true}},
      {Pad, "pad", PadLayer{}, {.window = true, .places_inputs = true}},
      {Upsample, "upsample", UpsampleLayer{}},
      {TransposedConvolution,
       "transposed_convolution",
       ConvolutionLayer{},
       {.convolution = true, .contraction = true, .window = true}},
      {Binary, "binary", BinaryFunction{}, {.joins = true, .point_wise = true}},
      {LayerNorm, "layer_norm", NormalizationLayer{}, {.statistics = true, .joins_channels = true}},
      {Reduce, "reduce", ReduceLayer{}},
      {ChannelShuffle, "channel_shuffle", ChannelShuffleLayer{}, {.joins_channels = true}},
      {DepthToSpace, "depth_to_space", DepthToSpaceLayer{}, {.joins_channels = true}},
      {SpaceToDepth,
       "space_to_depth",
       SpaceToDepthLayer{},
       {.window = true, .joins_channels = true}},
      {DiceCrossEntropy,
       "dice_cross_entropy",
       DiceCrossEntropyLayer{},
       {.labels = true, .loss = true, .joins_channels = true}},
  }};
}();
static_assert(std::ranges::all_of(layer_kinds, [](const LayerKindRow& row) {
  return &row == &layer_kinds[static_cast<std::size_t>(row.kind)];
}));

constexpr const LayerKindRow& row_of(LayerKind kind) {
  return layer_kinds[static_cast<std::size_t>(kind)];
}
constexpr const LayerTraits& traits_of(LayerKind kind) { return row_of(kind).traits; }
/// The default attributes of layers of this kind.
constexpr const LayerAttributes& attributes_of(LayerKind kind) { return row_of(kind).attributes; }

// Predicates of a kind. Each comment states what holds for the kind's layers, then what follows
// from that or who uses the predicate.

/// Whether the layer slides a kernel of weights over its input or, if transposed, over its output.
/// The shape of the weights follows from this.
constexpr bool is_convolution(LayerKind kind) { return traits_of(kind).convolution; }
/// Whether the layer has weights and sums over input channels (convolutions, FullyConnected). Such
/// a layer has one output channel per filter. Its parameters, floating-point operations and fusion
/// follow from this.
constexpr bool is_contraction(LayerKind kind) { return traits_of(kind).contraction; }
/// Whether the layer slides a window (convolutions, MaxPool, AveragePool, SpaceToDepth, and Pad,
/// whose kernel is 1). The extents of the output follow from this.
constexpr bool has_window(LayerKind kind) { return traits_of(kind).window; }
/// Whether layers of this kind have parameters.
constexpr bool has_parameters(LayerKind kind) {
  return traits_of(kind).contraction || traits_of(kind).statistics || kind == LayerKind::PReLU;
}
/// Whether each output element depends on the whole sample. The baseline one-weird-trick splits the
/// filters of such layers and the samples of all others.
constexpr bool is_fully_connected(LayerKind kind) { return traits_of(kind).fully_connected; }
/// Whether the layer is a loss that compares its input with one label per sample and position. Such
/// a loss loads labels.
constexpr bool has_labels(LayerKind kind) { return traits_of(kind).labels; }
/// Whether the layer is a loss. No layer reads a loss, and its forward passes compute its input's
/// gradient. Training lowers the weighted sum of all losses.
constexpr bool is_loss(LayerKind kind) { return traits_of(kind).loss; }
/// Whether the layer normalizes by mean and variance, then scales and shifts each channel.
/// Parameters and fusion follow from this.
constexpr bool has_statistics(LayerKind kind) { return traits_of(kind).statistics; }
/// Whether the layer's statistics cover several samples. Inference uses running statistics instead.
constexpr bool takes_batch_statistics(LayerKind kind) { return traits_of(kind).batch_statistics; }
/// Whether channels cannot be split, because each output element needs other channels of its
/// position. Only tests use this predicate. The layer's family (partition/layers) rejects the
/// split.
constexpr bool joins_channels(LayerKind kind) { return traits_of(kind).joins_channels; }
/// Whether the layer copies its inputs to places in its output, and puts zeros elsewhere (Concat,
/// Pad). Only tests use this predicate.
constexpr bool places_inputs(LayerKind kind) { return traits_of(kind).places_inputs; }
/// Whether the layer reads several producers: two (Binary), or two or more (Add, Concat).
/// network.json names the producers under the layer's key "inputs".
constexpr bool joins(LayerKind kind) { return traits_of(kind).joins; }
/// Whether each output element needs only the input elements at its own index, however the tensors
/// are split. The elements that the statistics of BatchNorm and InstanceNorm need are disregarded.
/// GroupNorm does not qualify, because some splits of channels cut its groups. All inputs have the
/// output's shape, but Binary may repeat an input along an axis. Blocks of layers and recomputation
/// follow from this.
constexpr bool is_point_wise(LayerKind kind) { return traits_of(kind).point_wise; }

/// A kind of layer as network.json names it: a LayerKind, a function of one or two tensors, or a
/// loss of each element.
struct LayerType {
  LayerKind kind = LayerKind::Input;
  PointwiseFunction function = {};  ///< used only if the kind is Pointwise
  BinaryFunction binary = {};       ///< used only if the kind is Binary
  LossFunction loss = {};           ///< used only if the kind is ElementwiseLoss

  constexpr LayerType() = default;
  constexpr LayerType(LayerKind layer_kind) : kind(layer_kind) {}
  constexpr LayerType(PointwiseFunction pointwise)
      : kind(LayerKind::Pointwise), function(pointwise) {}
  constexpr LayerType(BinaryFunction of_two) : kind(LayerKind::Binary), binary(of_two) {}
  constexpr LayerType(LossFunction of_element)
      : kind(LayerKind::ElementwiseLoss), loss(of_element) {}
  friend constexpr bool operator==(const LayerType&, const LayerType&) = default;
};
/// All types, in the order of LayerKind.
std::span<const LayerType> all_layer_types();
/// Returns the name of a type in network.json: "convolution", "relu", ...
std::string_view name_of(LayerType type);

}  // namespace stratplan
