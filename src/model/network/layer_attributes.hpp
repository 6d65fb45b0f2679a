#pragma once
// The attributes of layers, besides name, inputs and shapes. Each family of kinds has a struct. The
// kind decides which struct a layer has (layer_kinds.hpp).
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "model/base/json/fields.hpp"
#include "model/network/functions/binary.hpp"
#include "model/network/functions/local_response.hpp"
#include "model/network/functions/loss.hpp"
#include "model/network/functions/pointwise.hpp"
#include "model/network/functions/rearrangement.hpp"
#include "model/network/functions/reduction.hpp"
#include "model/network/scale.hpp"
#include "model/network/window.hpp"

namespace stratplan {

/// Attributes of kinds that need none.
struct PlainLayer {
  static constexpr auto fields() { return std::tuple(); }
  friend bool operator==(const PlainLayer&, const PlainLayer&) = default;
};

/// Attributes of a Convolution or a TransposedConvolution.
struct ConvolutionLayer {
  Windows windows{};  ///< slide over the input, or over the output if transposed
  std::int64_t filters = 0;
  bool bias = false;
  /// Each group of `filters / groups` filters reads its own C / groups input channels.
  std::int64_t groups = 1;
  /// Additional output positions of a TransposedConvolution, along D, H, W.
  std::array<std::int64_t, 3> output_padding{};

  static constexpr auto fields() {
    using L = ConvolutionLayer;
    return std::tuple(Field{"windows", &L::windows}, Field{"filters", &L::filters},
                      Field{"bias", &L::bias}, Field{"groups", &L::groups},
                      Field{"output_padding", &L::output_padding});
  }
  friend bool operator==(const ConvolutionLayer&, const ConvolutionLayer&) = default;
};

struct FullyConnectedLayer {
  std::int64_t filters = 0;
  bool bias = false;

  static constexpr auto fields() {
    return std::tuple(Field{"filters", &FullyConnectedLayer::filters},
                      Field{"bias", &FullyConnectedLayer::bias});
  }
  friend bool operator==(const FullyConnectedLayer&, const FullyConnectedLayer&) = default;
};

/// Attributes of a MaxPool or an AveragePool.
struct PoolLayer {
  Windows windows{};
  bool count_padding = true;  ///< whether an AveragePool counts padded zeros in its divisor

  static constexpr auto fields() {
    return std::tuple(Field{"windows", &PoolLayer::windows},
                      Field{"count_padding", &PoolLayer::count_padding});
  }
  friend bool operator==(const PoolLayer&, const PoolLayer&) = default;
};

/// What a Pad adds: a constant; the end's element again (edge); the elements inside the end, in
/// reverse order (reflect); or the elements from the other end (wrap: a circle of longitude).
enum class PaddingMode : std::uint8_t { Constant, Edge, Reflect, Wrap };
inline constexpr std::array<std::string_view, 4> padding_mode_names{"constant", "edge", "reflect",
                                                                    "wrap"};

/// Adds elements at the ends of the axes. Where a number is negative, elements are cut off instead.
struct PadLayer {
  Windows windows{};  ///< each has a kernel of extent 1 and the layer's padding
  std::array<std::int64_t, 2> channel_padding{};  ///< before the first channel, behind the last
  PaddingMode mode = PaddingMode::Constant;       ///< otherwise no number is negative
  double value = 0;                               ///< the constant

  static constexpr auto fields() {
    return std::tuple(Field{"windows", &PadLayer::windows},
                      Field{"channel_padding", &PadLayer::channel_padding},
                      Field{"padding_mode", &PadLayer::mode}, Field{"value", &PadLayer::value});
  }
  friend bool operator==(const PadLayer&, const PadLayer&) = default;
};

/// The parameters that a normalization has. A missing scale is 1, a missing shift 0.
enum class Affine : std::uint8_t { None, Scale, Shift, Both };
inline constexpr std::array<std::string_view, 4> affine_names{"none", "scale", "shift", "both"};

/// What a BatchNorm normalizes by in training: the statistics of the batch, or the running ones,
/// which then stay as they are.
enum class NormalizedBy : std::uint8_t { Batch, Running };
inline constexpr std::array<std::string_view, 2> normalized_by_names{"batch", "running"};

/// Attributes of a BatchNorm, an InstanceNorm, a GroupNorm or a LayerNorm. A LayerNorm takes mean
/// and variance over the channels of each position.
struct NormalizationLayer {
  double epsilon = 1e-5;    ///< added to the variance
  std::int64_t groups = 1;  ///< number of groups of channels in a GroupNorm
  Affine affine = Affine::Both;
  /// BatchNorm: the weight of a step's statistics in the running statistics; if negative, the
  /// network's running_momentum
  double momentum = -1;
  NormalizedBy statistics = NormalizedBy::Batch;

  bool has_scale() const { return affine == Affine::Scale || affine == Affine::Both; }
  bool has_shift() const { return affine == Affine::Shift || affine == Affine::Both; }
  static constexpr auto fields() {
    using L = NormalizationLayer;
    return std::tuple(Field{"epsilon", &L::epsilon}, Field{"groups", &L::groups},
                      Field{"affine", &L::affine}, Field{"momentum", &L::momentum},
                      Field{"statistics", &L::statistics});
  }
  friend bool operator==(const NormalizationLayer&, const NormalizationLayer&) = default;
};

/// Attributes of a SoftmaxCrossEntropy. The loss is a mean over the labels that count, weighted by
/// the weights of their classes.
struct CrossEntropyLayer {
  double label_smoothing = 0;  ///< the share of a label that all classes have in equal parts
  std::optional<std::int64_t> ignore_index{};  ///< a label that does not count
  bool weighted = false;  ///< whether classes have weights (ParameterRole::ClassWeights)

  /// Whether the divisor of the mean depends on the labels. It is then a sum over the whole batch.
  bool counts_labels() const { return weighted || ignore_index; }
  bool is_plain() const { return label_smoothing == 0 && !counts_labels(); }
  static constexpr auto fields() {
    using L = CrossEntropyLayer;
    return std::tuple(Field{"label_smoothing", &L::label_smoothing},
                      Field{"ignore_index", &L::ignore_index}, Field{"weighted", &L::weighted});
  }
  friend bool operator==(const CrossEntropyLayer&, const CrossEntropyLayer&) = default;
};

/// The samples over which the sums of a Dice loss run: all of the batch, or each by itself. With
/// sums of each sample, the loss is the mean over the samples.
enum class SumsOver : std::uint8_t { Batch, Sample };
inline constexpr std::array<std::string_view, 2> sums_over_names{"batch", "sample"};

/// Attributes of a DiceLoss.
struct DiceLayer {
  double epsilon = 1e-5;  ///< added to numerator and denominator
  SumsOver sums = SumsOver::Batch;
  std::optional<std::int64_t> ignore_index{};  ///< positions with this label do not count

  static constexpr auto fields() {
    using L = DiceLayer;
    return std::tuple(Field{"epsilon", &L::epsilon}, Field{"sums", &L::sums},
                      Field{"ignore_index", &L::ignore_index});
  }
  friend bool operator==(const DiceLayer&, const DiceLayer&) = default;
};

/// Attributes of a DiceCrossEntropy: the Dice loss of the softmax of the scores, and the
/// cross-entropy of the scores. The loss is their weighted sum.
struct DiceCrossEntropyLayer {
  DiceLayer dice{};
  CrossEntropyLayer entropy{};
  double dice_weight = 1, cross_entropy_weight = 1;

  static constexpr auto fields() {
    using L = DiceCrossEntropyLayer;
    return std::tuple(Field{"dice", &L::dice}, Field{"entropy", &L::entropy},
                      Field{"dice_weight", &L::dice_weight},
                      Field{"cross_entropy_weight", &L::cross_entropy_weight});
  }
  friend bool operator==(const DiceCrossEntropyLayer&, const DiceCrossEntropyLayer&) = default;
};

struct PReluLayer {
  bool one_slope = false;  ///< whether one slope serves all channels

  static constexpr auto fields() { return std::tuple(Field{"one_slope", &PReluLayer::one_slope}); }
  friend bool operator==(const PReluLayer&, const PReluLayer&) = default;
};

struct DropoutLayer {
  double probability = 0.5;  ///< the chance that an element is dropped

  static constexpr auto fields() {
    return std::tuple(Field{"probability", &DropoutLayer::probability});
  }
  friend bool operator==(const DropoutLayer&, const DropoutLayer&) = default;
};

/// Attributes of an Upsample. Layer::scales() has the maps that follow from them and the shapes.
struct UpsampleLayer {
  /// along D, H, W: output extents per input extent; used for positions even if `size` is given. A
  /// numerator of 0 stands for the ratio of `size` to the input's extent.
  std::array<Ratio, 3> scale{};
  std::array<std::int64_t, 3> size{};  ///< output extents along D, H, W; 0 if they follow
  bool linear = false;                 ///< mixes the elements around a position
  Coordinates coordinates = Coordinates::HalfPixel;
  Rounding rounding = Rounding::PreferFloor;  ///< used unless `linear`

  static constexpr auto fields() {
    using L = UpsampleLayer;
    return std::tuple(Field{"scale", &L::scale}, Field{"size", &L::size},
                      Field{"linear", &L::linear}, Field{"coordinates", &L::coordinates},
                      Field{"rounding", &L::rounding});
  }
  friend bool operator==(const UpsampleLayer&, const UpsampleLayer&) = default;
};

/// Attributes of a Reduce. The reduced axes have extent 1 in the output.
struct ReduceLayer {
  Reduction function = Reduction::Mean;
  ReducedAxes axes{};

  static constexpr auto fields() {
    return std::tuple(Field{"function", &ReduceLayer::function}, Field{"axes", &ReduceLayer::axes});
  }
  friend bool operator==(const ReduceLayer&, const ReduceLayer&) = default;
};

struct ChannelShuffleLayer {
  std::int64_t groups = 1;  ///< runs of channels of one length, from which channels come in turn

  static constexpr auto fields() {
    return std::tuple(Field{"groups", &ChannelShuffleLayer::groups});
  }
  friend bool operator==(const ChannelShuffleLayer&, const ChannelShuffleLayer&) = default;
};

/// Each position becomes a block of positions, which come from the channels.
struct DepthToSpaceLayer {
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< extents along D, H, W
  DepthOrder order = DepthOrder::CRD;

  static constexpr auto fields() {
    return std::tuple(Field{"block", &DepthToSpaceLayer::block},
                      Field{"order", &DepthToSpaceLayer::order});
  }
  friend bool operator==(const DepthToSpaceLayer&, const DepthToSpaceLayer&) = default;
};

/// Each block of positions becomes one position with more channels.
struct SpaceToDepthLayer {
  Windows windows{};  ///< each has the block's extent as its kernel and its stride
  DepthOrder order = DepthOrder::CRD;

  static constexpr auto fields() {
    return std::tuple(Field{"windows", &SpaceToDepthLayer::windows},
                      Field{"order", &SpaceToDepthLayer::order});
  }
  friend bool operator==(const SpaceToDepthLayer&, const SpaceToDepthLayer&) = default;
};

/// The attributes of one layer. A Pointwise layer holds an Activation, a Binary layer a
/// BinaryFunction, an ElementwiseLoss an ElementLoss, and a LocalResponseNorm a LocalResponse.
using LayerAttributes =
    std::variant<PlainLayer, ConvolutionLayer, FullyConnectedLayer, PoolLayer, PadLayer,
                 NormalizationLayer, DiceLayer, DropoutLayer, UpsampleLayer, Activation,
                 BinaryFunction, LocalResponse, PReluLayer, ReduceLayer, ChannelShuffleLayer,
                 DepthToSpaceLayer, SpaceToDepthLayer, ElementLoss, CrossEntropyLayer,
                 DiceCrossEntropyLayer>;
// Planning copies networks often, so copies of attributes must be cheap.
static_assert(std::is_trivially_copyable_v<LayerAttributes>);

}  // namespace stratplan
