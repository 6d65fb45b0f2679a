#pragma once
// A kernel: one computation on one rank, described by local shapes and a few attributes
// (kernel_attributes.hpp). The profiler measures a kernel, the model prices it, a backend prepares
// it, and the executor runs it. All of them use the same value.
//
// Reads and writes of each kind, in order. Tensors are dense in memory as (N, D, H, W, C), channels
// last; weights likewise as (F, kD, kH, kW, C / groups).
//   kind                        reads                        writes
//   ConvolutionForward          x, weights, [bias]           y
//   ConvolutionBackwardData     dy, weights                  dx
//   ConvolutionBackwardFilter   x, dy                        dweights
//   (A TransposedConvolution runs ConvolutionBackwardData forward and ConvolutionForward backward.
//   Kernel::x is then the layer's output, and Kernel::y its input.)
//   BiasAdd                     y, bias                      y (in place)
//   BiasGradient                dy                           dbias
//   MaxPoolForward              x                            y, index (I32: position in the window,
//                                                            row-major over kD, kH, kW)
//   MaxPoolBackward             dy, index                    dx
//   AveragePoolForward          x                            y
//   AveragePoolBackward         dy                           dx
//   SpatialMeanForward          x                            y: sum over the local positions,
//                                                            divided by `positions`
//   SpatialMeanBackward         dy                           dx
//   BatchNormStatistics         x                            sums (F64, [sets][2][C]: sum, sum of
//                                                            squares)
//   BatchNormForward            x, sums, scale, shift        y
//   BatchNormBackwardSums       x, dy, sums                  gradient_sums (F64, [sets][2][C]: sums
//                                                            of dy and of dy * normalized x),
//                                                            dscale, dshift
//   BatchNormBackward           x, dy, sums, gradient_sums,  dx
//                               scale
//   PointwiseForward            x                            y (network/functions/pointwise.hpp)
//   PointwiseBackward           x or y, dy                   dx
//   BinaryForward               a, b                         y (network/functions/binary.hpp)
//   BinaryBackward              [a], [b], dy                 the gradient of the input `of`
//   Add                         x0, x1, ...                  y (may be one of the reads)
//   Dropout                     x                            y: zero or x / (1 - p), at random by
//                                                            global element index; backward: dx
//                                                            from dy
//   SoftmaxCrossEntropy         x, labels (I32, one per      loss (F64 scalar: local sum / terms),
//                               sample and position)         dx (of the mean loss)
//   LabelWeights                labels, [class weights]      sum (F64 scalar: of the weights of the
//                                                            labels)
//   WeightedCrossEntropy        x, labels, [class weights],  loss (F64 scalar: local sum / (terms *
//                               [divisor (sum of all ranks)] divisor)), dx
//   ElementwiseLoss             x, target                    loss (F64 scalar: local sum / terms),
//                                                            dx (network/functions/loss.hpp)
//   CopyRegion                  source                       destination (packing, unpacking,
//                                                            moving, adding)
//   Fill                        -                            destination (`value`, usually 0)
//   SgdMomentum                 weights, gradient, velocity  weights, velocity (in place)
//   SoftmaxForward              x                            y
//   SoftmaxBackward             y, dy                        dx
//   PreluForward                x, slope                     y
//   PreluBackward               x, dy, slope                 dx
//   PreluGradient               x, dy                        dslope
//   LocalResponseForward        x                            y
//   LocalResponseBackward       x, dy                        dx
//   LayerNormForward            x, scale, shift              y, statistics (F64, [positions][2]:
//                                                            mean, and 1 / sqrt(variance +
//                                                            epsilon), over the channels)
//   LayerNormBackward           x, dy, statistics, scale     dx
//   LayerNormGradient           x, dy, statistics            dscale, dshift
//   DiceSums                    x, labels                    sums (F64, [3][C]: of x where the
//                                                            label is the class, of x, and the
//                                                            number of positions with the label;
//                                                            `per_sample`: [N][3][C])
//   DiceLoss                    labels, sums (of all ranks)  loss (F64 scalar: complete, or of this
//                                                            rank's samples), dx
//   UpsampleForward             x                            y: along each axis the nearest
//                                                            element, or a mix of the two around it
//                                                            (network/scale.hpp)
//   UpsampleBackward            dy                           dx
//   ReduceForward               x                            y: sum over the local terms, divided
//                                                            by `divisor`; or the greatest term
//   ReduceBackward              dy; Max: x, dy               dx
//   RearrangeForward            x                            y (functions/rearrangement.hpp)
//   RearrangeBackward           dy                           dx: zero where dy holds no element
//   BatchNormMoments            sums                         moments (F64, [2][C]: this rank's
//                                                            share of mean and unbiased variance,
//                                                            averaged over the sets)
//   RunningAverage              moments (of all ranks),      running (F32, [2][C], in place)
//                               running
//   BatchNormInference          x, running, scale, shift     y
//   BatchNormRunningSums        running                      sums (F64, [2][C]) whose mean and
//                                                            variance are the running ones
// Kinds with an epilogue, where y is the activation's output both forward and backward:
//   BatchNormForward            x, sums, scale, shift,       y: normalized, then the addend added,
//                               [addend]                     then activated
//   BatchNormBackwardSums       x, dy, sums, y               gradient_sums, dscale, dshift, [with
//                                                            an addend: dx of the activation]
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
//   SquaredNorms                weights, gradient            norms (F64, [2]: the squared norms of
//                                                            weights and gradient)
//   Lars                        weights, gradient, velocity, weights, velocity
//                               norms
// Types (Precision in execution.hpp): activations, their gradients and the weights that
// convolutions read have Kernel::type. All other tensors are F32, unless the table says otherwise:
// parameters, optimizer state, gradients of parameters, biases, targets. A kernel computes in F32
// or wider, and rounds its results when it stores them.
//   Convert                     source (F32)                 destination (of Kernel::type)
//   Widen                       source (of Kernel::type)     destination (F32)
// Kinds in a program with a scaled loss (`scaled`), which F16 gradients need:
//   losses                      last read: scaling (F64, [2]: the scale, and steps since it changed
//                               or a gradient overflowed)
//   Unscale                     gradient, scaling, overflows gradient, overflows (F64 scalar:
//                                                            counts elements that are infinite or
//                                                            NaN), in place
//   optimizers, RunningAverage  last read: overflows; if not zero, the kernel writes nothing
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
  ElementwiseLoss,
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
  Widen,
  Unscale,
  AdjustLossScale,
  BinaryForward,
  BinaryBackward,
  BatchNormRunningSums,
  LayerNormForward,
  LayerNormBackward,
  LayerNormGradient,
  ReduceForward,
  ReduceBackward,
  RearrangeForward,
  RearrangeBackward,
  LabelWeights,
  WeightedCrossEntropy,
};
inline constexpr int kernel_kind_count = static_cast<int>(KernelKind::WeightedCrossEntropy) + 1;
/// "conv_forward", "max_pool_backward", ...
std::string_view name_of(KernelKind kind);
/// Whether kernels of this kind read or write activations or their gradients, which then have
/// Kernel::type.
bool works_on_activations(KernelKind kind);
/// Whether kernels of this kind change parameters, optimizer state or running statistics.
bool is_update(KernelKind kind);
/// The default attributes of kernels of this kind.
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

/// Kinds whose tensors all have one shape (element-wise kinds, normalizations, Softmax, losses,
/// Fill, optimizers) hold this shape in both x and y. BiasAdd and BiasGradient use only y. For a
/// TransposedConvolution, x is the layer's local output, and y its local input.
struct Kernel {
  KernelKind kind = KernelKind::Fill;
  Shape x{};  ///< the layer's local input, forward and backward; CopyRegion: the source
  Shape y{};  ///< the layer's local output, forward and backward; CopyRegion: the destination
  /// type of activations and their gradients; CopyRegion, Fill, Convert: type of the elements
  /// written; Widen: type of the elements read; all other kinds: F32
  DataType type = DataType::F32;
  /// holds the alternative that belongs to the kind
  KernelAttributes attributes = attributes_of(kind);

  /// The attributes, which must be of type `Attributes`.
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
  /// Whether the attributes are of one of these types.
  template <class... Attributes>
  bool has() const {
    return (std::holds_alternative<Attributes>(attributes) || ...);
  }
  /// Requires a convolution or a pooling.
  const Windows& windows() const {
    const auto* convolution = std::get_if<ConvolutionAttributes>(&attributes);
    return convolution ? convolution->windows : as<PoolAttributes>().windows;
  }
  Windows& windows() { return const_cast<Windows&>(std::as_const(*this).windows()); }
  /// Requires a BatchNorm kind or BatchNormMoments.
  const StatisticsSets& sets() const {
    const auto* moments = std::get_if<MomentsAttributes>(&attributes);
    return moments ? moments->sets : as<NormalizationAttributes>().sets;
  }
  StatisticsSets& sets() { return const_cast<StatisticsSets&>(std::as_const(*this).sets()); }
  /// The epilogue of convolutions, BiasAdd, BiasGradient and BatchNorm. Other kinds have an empty
  /// epilogue.
  const Epilogue& epilogue() const;
  /// Requires a kind that has an epilogue.
  Epilogue& epilogue();
  /// Whether a loss reads the loss scale, or an update reads the overflows (see the table). False
  /// for all other kinds.
  bool scaled() const;
  /// The factor by which a loss multiplies its gradient; 1 in all other kernels.
  double loss_weight() const;
  /// Sets loss_weight() and scaled(). Requires a loss.
  void set_loss_factors(double weight, bool scaled);
  /// The shape of the input whose gradient BinaryBackward makes.
  const Shape& differentiated() const {
    const Binary& binary = as<Binary>();
    return binary.of == 0 ? x : binary.second;
  }

  /// The buffers that the table above lists, in order.
  Operands operands() const;
  /// The first word of the key: name_of(kind), or the function's name for losses of each element,
  /// pointwise and binary kinds ("relu_forward").
  std::string name() const;
  /// The key under which the kernel's time is stored. It contains everything that decides the time,
  /// and nothing else: "conv_forward n4 c64 f32 x1.56.56 y1.28.28 k1.3.3 s1.2.2 pb0.1.1".
  std::string key() const;
  /// The number of operations, for estimates and lower bounds.
  Flops flops() const;
  /// The bytes read and written, each once, for estimates and lower bounds.
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
