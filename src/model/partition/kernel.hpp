#pragma once
// The local kernels: what one rank computes in one go, described by local shapes alone. The same value is measured by the
// profiler, priced by the model, prepared by a backend and run by the executor.
//
// Reads and writes of each kind, in order. Tensors are dense in memory as (N, D, H, W, C), channels last; weights likewise as
// (F, kD, kH, kW, C / groups).
//   kind                        reads                                  writes
//   ConvolutionForward          x, weights, [bias]                     y
//   ConvolutionBackwardData     dy, weights                            dx
//   ConvolutionBackwardFilter   x, dy                                  dweights
//   (of a TransposedConvolution, backward data is forward and forward is backward data: x is its output, y its input)
//   BiasAdd                     y, bias                                y (in place)
//   BiasGradient                dy                                     dbias
//   MaxPoolForward              x                                      y, index (I32: position in the window, row-major over kD, kH, kW)
//   MaxPoolBackward             dy, index                              dx
//   AveragePoolForward          x                                      y
//   AveragePoolBackward         dy                                     dx
//   SpatialMeanForward          x                                      y: sum over the local positions / `positions`
//   SpatialMeanBackward         dy                                     dx
//   BatchNormStatistics         x                                      sums (F64, [sets][2][C]: sum, sum of squares)
//   BatchNormForward            x, sums, scale, shift                  y
//   BatchNormBackwardSums       x, dy, sums                            gradient_sums (F64, [sets][2][C]: of dy, of dy * normalized x), dscale, dshift
//   BatchNormBackward           x, dy, sums, gradient_sums, scale      dx
//   PointwiseForward            x                                      y: of each element (network/pointwise.hpp)
//   PointwiseBackward           x or y, dy                             dx
//   BinaryForward               a, b                                   y: of each pair of elements (network/binary.hpp)
//   BinaryBackward              [a], [b], dy                           the gradient of the input `binary.of`
//   Add                         x0, x1, ...                            y (may be one of the reads)
//   Dropout                     x                                      y: zero or x / (1 - p), by global element index; backward: the same on dy
//   SoftmaxCrossEntropy         x, labels (I32, one per sample and position)   loss (F64 scalar: local sum / terms), dx (of the mean loss)
//   MeanSquaredError            x, target                              loss (F64 scalar), dx
//   CopyRegion                  source                                 destination (packing, unpacking, moving; adds if `accumulate`)
//   Fill                        -                                      destination (zeros)
//   SgdMomentum                 weights, gradient, velocity            weights, velocity (in place)
//   SoftmaxForward              x                                      y
//   SoftmaxBackward             y, dy                                  dx
//   PreluForward                x, slope                               y
//   PreluBackward               x, dy, slope                           dx
//   PreluGradient               x, dy                                  dslope
//   LocalResponseForward        x                                      y
//   LocalResponseBackward       x, dy                                  dx
//   DiceSums                    x, labels                              sums (F64, [3][C]: of x at the label, of x, of positions with the label)
//   DiceLoss                    labels, sums (of all ranks)            loss (F64 scalar, complete), dx
//   UpsampleForward             x                                      y: along each axis the nearest element, or the two around it mixed
//   UpsampleBackward            dy                                     dx
//   BatchNormMoments            sums                                   moments (F64, [2][C]: mean and unbiased variance, this rank's share of the sets' mean)
//   RunningAverage              moments (of all ranks), running        running (F32, [2][C], in place: weight `scalar` for the moments)
//   BatchNormInference          x, running, scale, shift               y
// With an activation behind it or an addend (fusion.hpp), which cost no pass over memory of their own; y is the activation's output in both directions:
//   BatchNormForward            x, sums, scale, shift, [addend]        y: normalized, then the addend added, then activated
//   BatchNormBackwardSums       x, dy, sums, y                         gradient_sums, dscale, dshift, [dx of the activation, if there is an addend]
//   BatchNormBackward           x, dy, sums, gradient_sums, scale, y   dx
//   BatchNormInference          x, running, scale, shift, [addend]     y
//   ConvolutionForward, BiasAdd as above                               y, activated
//   BiasGradient                dy, y                                  dbias, dx of the activation
// Other optimizers (network/training.hpp has the formulas), all in place:
//   Sgd                         weights, gradient                      weights
//   SgdNesterov                 weights, gradient, velocity            weights, velocity
//   Adam, AdamW                 weights, gradient, mean, mean square   weights, mean, mean square
//   SquaredNorms                weights, gradient                      norms (F64, [2]: sum of squares of each)
//   Lars                        weights, gradient, velocity, norms     weights, velocity
// Types (execution.hpp, Precision): activations, their gradients and the weights that convolutions read are of Kernel::type; the rest is F32, unless the table says
// otherwise: parameters, what an optimizer keeps, gradients of parameters, biases, targets. A kernel computes in F32 or wider, and rounds what it stores.
//   Convert                     source (F32)                           destination (of Kernel::type)
// Where the loss is scaled (`scaled`), as gradients in F16 need it:
//   SoftmaxCrossEntropy, MeanSquaredError, DiceLoss: read scaling last (F64, [2]: the scale, and steps since it changed or a gradient overflowed); dx is scaled
//   Unscale                     gradient, scaling, overflows           gradient, overflows (F64 scalar: what is no number is added), in place
//   optimizers, RunningAverage: read overflows last, and if there are any write nothing
//   AdjustLossScale             scaling, overflows                     scaling (in place)
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/base/fields.hpp"
#include "model/network/binary.hpp"
#include "model/network/local_response.hpp"
#include "model/network/pointwise.hpp"
#include "model/network/scale.hpp"
#include "model/network/shape.hpp"
#include "model/network/window.hpp"

namespace stratplan {

enum class KernelKind : int {
  ConvolutionForward,
  ConvolutionBackwardData,
  ConvolutionBackwardFilter,
  BiasAdd,
  BiasGradient,
  MaxPoolForward,
  MaxPoolBackward,
  AveragePoolForward,
  AveragePoolBackward,
  SpatialMeanForward,
  SpatialMeanBackward,
  BatchNormStatistics,
  BatchNormForward,
  BatchNormBackwardSums,
  BatchNormBackward,
  PointwiseForward,
  PointwiseBackward,
  Add,
  Dropout,
  SoftmaxCrossEntropy,
  MeanSquaredError,
  CopyRegion,
  Fill,
  SgdMomentum,
  PreluForward,
  PreluBackward,
  PreluGradient,
  SoftmaxForward,
  SoftmaxBackward,
  LocalResponseForward,
  LocalResponseBackward,
  DiceSums,
  DiceLoss,
  UpsampleForward,
  UpsampleBackward,
  Sgd,
  SgdNesterov,
  Adam,
  AdamW,
  SquaredNorms,
  Lars,
  BatchNormMoments,
  RunningAverage,
  BatchNormInference,
  Convert,
  Unscale,
  AdjustLossScale,
  BinaryForward,
  BinaryBackward,
};
inline constexpr int kernel_kind_count = static_cast<int>(KernelKind::BinaryBackward) + 1;
/// "conv_forward", "max_pool_backward", ...
std::string_view name_of(KernelKind kind);
/// Whether activations or their gradients are among what such kernels read or write: Kernel::type is then theirs.
bool works_on_activations(KernelKind kind);
/// Whether it changes parameters, what an optimizer keeps, or running statistics.
bool is_update(KernelKind kind);

/// Which normalization set a local sample belongs to: set (first_sample + n) / set_samples, stored at that minus first_set. Instance and group normalization
/// are batch normalization in sets of one sample.
struct StatisticsSets {
  std::int64_t set_samples = 1;   ///< samples of a full set
  std::int64_t first_sample = 0;  ///< global index of local sample 0
  std::int64_t first_set = 0;     ///< global index of the first set in the buffer
  std::int64_t sets = 1;          ///< sets in the buffer; those without local samples hold zeros
  std::int64_t batch = 1;         ///< global samples: the last set may be shorter
  std::int64_t positions =
      1;  ///< global D * H * W: a set has samples * positions terms per channel
  std::int64_t group_channels =
      1;  ///< consecutive channels that share mean and variance; sums are kept per channel all the same

  /// Place in the buffer of the set that local sample n belongs to.
  constexpr std::int64_t set_of(std::int64_t n) const {
    return (first_sample + n) / set_samples - first_set;
  }
  /// Terms of the means at that place.
  constexpr double terms(std::int64_t set) const {
    const std::int64_t before = (first_set + set) * set_samples;
    const std::int64_t samples = batch - before < set_samples ? batch - before : set_samples;
    return static_cast<double>(samples * positions * group_channels);
  }
  static constexpr auto fields() {
    using S = StatisticsSets;
    return std::tuple(
        Field{"set_samples", &S::set_samples}, Field{"first_sample", &S::first_sample},
        Field{"first_set", &S::first_set}, Field{"sets", &S::sets}, Field{"batch", &S::batch},
        Field{"positions", &S::positions}, Field{"group_channels", &S::group_channels});
  }
  friend auto operator<=>(const StatisticsSets&, const StatisticsSets&) = default;
};

/// A function of two tensors, of which the first has shape Kernel::x. Extents of 1 are read again
/// along y's.
struct Binary {
  BinaryFunction function{};
  Shape second{};  ///< local
  int of = 0;      ///< BinaryBackward: which input's gradient it makes

  static constexpr auto fields() {
    return std::tuple(Field{"function", &Binary::function}, Field{"second", &Binary::second},
                      Field{"of", &Binary::of});
  }
  friend auto operator<=>(const Binary&, const Binary&) = default;
};

/// One buffer that a kernel reads or writes.
struct Operand {
  DataType type = DataType::F32;
  std::int64_t elements = 0;
  Bytes bytes() const { return {elements * size_of(type)}; }
  friend bool operator==(const Operand&, const Operand&) = default;
};
struct Operands {
  std::vector<Operand> reads;
  std::vector<Operand> writes;
};

/// Kinds whose tensors have one shape only (element-wise ones, normalizations, Softmax, losses, Fill, optimizers) hold it in both x and y; BiasAdd and
/// BiasGradient use y alone.
struct Kernel {
  KernelKind kind = KernelKind::Fill;
  Shape
      x{};  ///< local input (of the layer, in both directions); CopyRegion: local shape of the source
  Shape
      y{};  ///< local output (of the layer, in both directions); CopyRegion: local shape of the destination
  std::array<Window, 3> windows{};  ///< along D, H, W, with local padding
  bool bias = false;                ///< ConvolutionForward adds one
  bool count_padding = true;        ///< AveragePool
  bool accumulate = false;          ///< CopyRegion adds
  int inputs = 1;                   ///< Add: number of reads
  std::int64_t groups =
      1;  ///< convolutions: local groups; each of y's has channels of its own in x
  DataType type = DataType::
      F32;  ///< of activations and what goes with them; CopyRegion, Fill, Convert: of the elements written; F32 for all others
  /// BatchNorm, Dice: epsilon. Dropout: probability. Losses: terms of the global mean. SpatialMean: global
  /// positions. BatchNormMoments: weight of a set.
  double scalar = 0;
  StatisticsSets sets{};                        ///< BatchNorm
  Shape region{};                               ///< CopyRegion: extents moved
  std::array<std::int64_t, axis_count> from{};  ///< CopyRegion: start in the source
  std::array<std::int64_t, axis_count> to{};    ///< CopyRegion: start in the destination
  Activation pointwise{};                       ///< Pointwise
  Binary binary{};                              ///< Binary
  LocalResponse response{};                     ///< LocalResponse
  std::array<Scale, 3> scales{};                ///< Upsample: along D, H, W, with local phases
  /// BatchNorm, ConvolutionForward, BiasAdd, BiasGradient: what is done to the result before it is
  /// written; it has a fused_slope().
  std::optional<Activation> activation{};
  bool addend = false;  ///< BatchNorm: something is added before the activation
  bool scaled = false;  ///< losses, updates: see the table

  /// Factor of negative results where the activation is fused; 1 without one.
  double activation_slope() const { return activation ? *activation->fused_slope() : 1; }
  /// Of the input that BinaryBackward makes the gradient of.
  const Shape& differentiated() const { return binary.of == 0 ? x : binary.second; }
  /// The buffers of the table above, in order.
  Operands operands() const;
  /// That of its kind, but "relu_forward" of a function: the first word of its key.
  std::string name() const;
  /// The key under which its time is stored: everything that decides how long it takes, nothing else:
  /// "conv_forward n4 c64 f32 x1.56.56 y1.28.28 k1.3.3 s1.2.2 pb0.1.1".
  std::string key() const;
  /// Operations, and bytes read and written once each: for estimates and floors.
  Flops flops() const;
  Bytes bytes() const;
  static constexpr auto fields() {
    using K = Kernel;
    return std::tuple(
        Field{"kind", &K::kind}, Field{"x", &K::x}, Field{"y", &K::y},
        Field{"windows", &K::windows}, Field{"bias", &K::bias},
        Field{"count_padding", &K::count_padding}, Field{"accumulate", &K::accumulate},
        Field{"inputs", &K::inputs}, Field{"groups", &K::groups}, Field{"type", &K::type},
        Field{"scalar", &K::scalar}, Field{"sets", &K::sets}, Field{"region", &K::region},
        Field{"from", &K::from}, Field{"to", &K::to}, Field{"pointwise", &K::pointwise},
        Field{"binary", &K::binary}, Field{"response", &K::response}, Field{"scales", &K::scales},
        Field{"activation", &K::activation}, Field{"addend", &K::addend},
        Field{"scaled", &K::scaled});
  }
  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

}  // namespace stratplan
