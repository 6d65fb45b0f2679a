#pragma once
// The local kernels: what one rank computes in one go, described by local shapes and a few
// attributes (kernel_attributes.hpp). The same value is measured by the profiler, priced by the
// model, prepared by a backend and run by the executor.
//
// Reads and writes of each kind, in order. Tensors are dense in memory as (N, D, H, W, C), channels
// last; weights likewise as (F, kD, kH, kW, C / groups).
//   kind                        reads                        writes
//   ConvolutionForward          x, weights, [bias]           y
//   ConvolutionBackwardData     dy, weights                  dx
//   ConvolutionBackwardFilter   x, dy                        dweights
//   (of a TransposedConvolution, backward data is forward and forward is backward data: x is its
//   output, y its input)
//   BiasAdd                     y, bias                      y (in place)
//   BiasGradient                dy                           dbias
//   MaxPoolForward              x                            y, index (I32: position in the window,
//                                                            row-major over kD, kH, kW)
//   MaxPoolBackward             dy, index                    dx
//   AveragePoolForward          x                            y
//   AveragePoolBackward         dy                           dx
//   SpatialMeanForward          x                            y: sum over the local positions
//                                                            / `positions`
//   SpatialMeanBackward         dy                           dx
//   BatchNormStatistics         x                            sums (F64, [sets][2][C]: sum, sum of
//                                                            squares)
//   BatchNormForward            x, sums, scale, shift        y
//   BatchNormBackwardSums       x, dy, sums                  gradient_sums (F64, [sets][2][C]: of
//                                                            dy, of dy * normalized x), dscale,
//                                                            dshift
//   BatchNormBackward           x, dy, sums, gradient_sums,  dx
//                               scale
//   PointwiseForward            x                            y (network/pointwise.hpp)
//   PointwiseBackward           x or y, dy                   dx
//   BinaryForward               a, b                         y (network/binary.hpp)
//   BinaryBackward              [a], [b], dy                 the gradient of the input `of`
//   Add                         x0, x1, ...                  y (may be one of the reads)
//   Dropout                     x                            y: zero or x / (1 - p), by global
//                                                            element index; backward: same on dy
//   SoftmaxCrossEntropy         x, labels (I32, one per      loss (F64 scalar: local sum / terms),
//                               sample and position)         dx (of the mean loss)
//   MeanSquaredError            x, target                    loss (F64 scalar), dx
//   CopyRegion                  source                       destination (packing, unpacking,
//                                                            moving, adding)
//   Fill                        -                            destination (zeros)
//   SgdMomentum                 weights, gradient, velocity  weights, velocity (in place)
//   SoftmaxForward              x                            y
//   SoftmaxBackward             y, dy                        dx
//   PreluForward                x, slope                     y
//   PreluBackward               x, dy, slope                 dx
//   PreluGradient               x, dy                        dslope
//   LocalResponseForward        x                            y
//   LocalResponseBackward       x, dy                        dx
//   DiceSums                    x, labels                    sums (F64, [3][C]: of x at the label,
//                                                            of x, of positions with the label)
//   DiceLoss                    labels, sums (of all ranks)  loss (F64 scalar, complete), dx
//   UpsampleForward             x                            y: along each axis the nearest
//                                                            element, or the two around it mixed
//   UpsampleBackward            dy                           dx
//   BatchNormMoments            sums                         moments (F64, [2][C]: mean and
//                                                            unbiased variance, this rank's share
//                                                            of the sets' mean)
//   RunningAverage              moments (of all ranks),      running (F32, [2][C], in place)
//                               running
//   BatchNormInference          x, running, scale, shift     y
// With an epilogue; y is the activation's output in both directions:
//   BatchNormForward            x, sums, scale, shift,       y: normalized, then the addend added,
//                               [addend]                     then activated
//   BatchNormBackwardSums       x, dy, sums, y               gradient_sums, dscale, dshift, [dx of
//                                                            the activation, if there is an addend]
//   BatchNormBackward           x, dy, sums, gradient_sums,  dx
//                               scale, y
//   BatchNormInference          x, running, scale, shift,    y
//                               [addend]
//   ConvolutionForward, BiasAdd as above                     y, activated
//   BiasGradient                dy, y                        dbias, dx of the activation
// Other optimizers (network/training.hpp has the formulas), all in place:
//   Sgd                         weights, gradient            weights
//   SgdNesterov                 weights, gradient, velocity  weights, velocity
//   Adam, AdamW                 weights, gradient, mean,     weights, mean, mean square
//                               mean square
//   SquaredNorms                weights, gradient            norms (F64, [2]: of each, squared)
//   Lars                        weights, gradient, velocity, weights, velocity
//                               norms
// Types (execution.hpp, Precision): activations, their gradients and the weights that convolutions
// read are of Kernel::type; the rest is F32, unless the table says otherwise: parameters, what an
// optimizer keeps, gradients of parameters, biases, targets. A kernel computes in F32 or wider, and
// rounds what it stores.
//   Convert                     source (F32)                 destination (of Kernel::type)
// Where the loss is scaled (`scaled`), as gradients in F16 need it:
//   losses                      last: scaling (F64, [2]: the scale, and ops since it changed or a
//                               gradient overflowed)
//   Unscale                     gradient, scaling, overflows gradient, overflows (F64 scalar: what
//                                                            is no number is added), in place
//   optimizers, RunningAverage  last: overflows; if there are any they write nothing
//   AdjustLossScale             scaling, overflows           scaling (in place)
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/json/fields.hpp"
#include "model/network/shape.hpp"
#include "model/partition/program/kernel_attributes.hpp"

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
/// Whether activations or their gradients are among what such kernels read or write: Kernel::type
/// is then theirs.
bool works_on_activations(KernelKind kind);
/// Whether it changes parameters, what an optimizer keeps, or running statistics.
bool is_update(KernelKind kind);
/// What kernels of this kind have, as it is by default.
const KernelAttributes& attributes_of(KernelKind kind);

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

/// Kinds whose tensors have one shape only (element-wise ones, normalizations, Softmax, losses,
/// Fill, optimizers) hold it in both x and y; BiasAdd and BiasGradient use y alone.
struct Kernel {
  KernelKind kind = KernelKind::Fill;
  Shape x{};  ///< local input (of the layer, in both directions); CopyRegion: the source
  Shape y{};  ///< local output (of the layer, in both directions); CopyRegion: the destination
  /// Of activations and what goes with them; CopyRegion, Fill, Convert: of the elements written;
  /// F32 for all others.
  DataType type = DataType::F32;
  KernelAttributes attributes = attributes_of(kind);  ///< the alternative is the kind's

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
  /// Convolutions and pools.
  const Windows& windows() const {
    const auto* convolution = std::get_if<ConvolutionAttributes>(&attributes);
    return convolution ? convolution->windows : as<PoolAttributes>().windows;
  }
  Windows& windows() { return const_cast<Windows&>(std::as_const(*this).windows()); }
  /// BatchNorm, BatchNormMoments.
  const StatisticsSets& sets() const {
    const auto* moments = std::get_if<MomentsAttributes>(&attributes);
    return moments ? moments->sets : as<NormalizationAttributes>().sets;
  }
  StatisticsSets& sets() { return const_cast<StatisticsSets&>(std::as_const(*this).sets()); }
  /// Convolutions, BiasAdd, BiasGradient, BatchNorm; of other kinds one that does nothing.
  const Epilogue& epilogue() const;
  /// Of the kinds that have one.
  Epilogue& epilogue();
  /// Losses, updates: see the table.
  bool scaled() const;
  /// Of the input that BinaryBackward makes the gradient of.
  const Shape& differentiated() const {
    const Binary& binary = as<Binary>();
    return binary.of == 0 ? x : binary.second;
  }

  /// The buffers of the table above, in order.
  Operands operands() const;
  /// That of its kind, but "relu_forward" of a function: the first word of its key.
  std::string name() const;
  /// The key under which its time is stored: everything that decides how long it takes, nothing
  /// else: "conv_forward n4 c64 f32 x1.56.56 y1.28.28 k1.3.3 s1.2.2 pb0.1.1".
  std::string key() const;
  /// Operations, and bytes read and written once each: for estimates and floors.
  Flops flops() const;
  Bytes bytes() const;
  static constexpr auto fields() {
    using K = Kernel;
    return std::tuple(Field{"kind", &K::kind}, Field{"x", &K::x}, Field{"y", &K::y},
                      Field{"type", &K::type}, Field{"attributes", &K::attributes});
  }
  friend auto operator<=>(const Kernel&, const Kernel&) = default;

 private:
  void expect_own_attributes() const;
  [[noreturn]] void has_other_attributes() const;
};

}  // namespace stratplan
