#pragma once
// Kernels of every kind at odd shapes, operands for them, and the tolerances within which a backend
// must agree with the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/partition/halo.hpp"
#include "runtime/kernel_runner.hpp"
#include "runtime/window_kernels.hpp"
#include "support/networks.hpp"

namespace stratplan::test::kernel_cases {

using enum KernelKind;

inline std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}
inline std::int64_t taps(const Kernel& kernel) {
  const auto& [d, h, w] = kernel.windows();
  return d.kernel * h.kernel * w.kernel;
}

// ---------------------------------------------------------------- cases

inline constexpr Shape odd_shapes[] = {
    {{1, 1, 1, 1, 1}},    {{2, 3, 1, 5, 7}},    {{3, 19, 2, 3, 5}},
    {{2, 64, 1, 9, 9}},   {{1, 37, 1, 40, 41}}, {{5, 16, 1, 1, 1}},
    {{1, 1000, 1, 3, 1}}, {{3, 4, 2, 5, 3}},    {{2, 66, 1, 7, 5}}};

inline std::vector<Kernel> of_one_shape(KernelKind kind, const KernelAttributes& attributes) {
  std::vector<Kernel> kernels;
  for (const Shape& shape : odd_shapes) {
    Kernel kernel{.kind = kind, .x = shape, .y = shape, .attributes = attributes};
    if (kind == Add) kernel.as<AddAttributes>().inputs = 2 + static_cast<int>(kernels.size()) % 3;
    if (kind == SpatialMeanForward || kind == SpatialMeanBackward)
      kernel.y[Axis::D] = kernel.y[Axis::H] = kernel.y[Axis::W] = 1;
    kernels.push_back(kernel);
  }
  return kernels;
}

inline std::vector<Kernel> of_one_shape(KernelKind kind) {
  return of_one_shape(kind, attributes_of(kind));
}

/// Returns each shape with one set, with sets of two samples that start in the middle of a set, and
/// with sets in the buffer that have no samples here.
inline std::vector<Kernel> batch_norms(KernelKind kind) {
  const KernelAttributes attributes = kind == BatchNormMoments
                                          ? KernelAttributes(MomentsAttributes{.weight = 1e-5})
                                          : NormalizationAttributes{.epsilon = 1e-5};
  std::vector<Kernel> kernels;
  for (const Kernel& base : of_one_shape(kind, attributes)) {
    const std::int64_t n = base.x[Axis::N], p = positions(base.x);
    const StatisticsSets choices[] = {{.set_samples = 64, .batch = n, .positions = p},
                                      {.set_samples = 2,
                                       .first_sample = 3,
                                       .first_set = 1,
                                       .sets = (n + 2) / 2,
                                       .batch = n + 3,
                                       .positions = 2 * p},
                                      {.set_samples = 2,
                                       .first_sample = 2,
                                       .first_set = 0,
                                       .sets = 5,
                                       .batch = 10,
                                       .positions = p}};
    for (const StatisticsSets& sets : choices) {
      kernels.push_back(base);
      kernels.back().sets() = sets;
    }
    for (const std::int64_t groups : {1, 3, 16}) {  // group normalization
      if (base.x[Axis::C] % groups != 0) continue;
      kernels.push_back(base);
      kernels.back().sets() = {
          .sets = n, .batch = n, .positions = p, .group_channels = base.x[Axis::C] / groups};
    }
  }
  return kernels;
}

inline const std::optional<Activation> relu{{PointwiseFunction::Relu, {}}},
    leaky_relu{{PointwiseFunction::LeakyRelu, {0.3, 0}}};

/// Returns each kernel alone, and with everything that can be fused with it.
inline std::vector<Kernel> fused_batch_norms(KernelKind kind, const std::vector<Kernel>& bare) {
  std::vector<Kernel> kernels = bare;
  for (const auto& activation : {std::optional<Activation>(), relu, leaky_relu})
    for (const bool addend : {false, true}) {
      const bool nothing = !activation && (!addend || kind == BatchNormBackwardSums);
      if (nothing || (addend && kind == BatchNormBackward)) continue;
      for (Kernel kernel : bare) {
        kernel.epilogue().activation = activation;
        kernel.epilogue().addend = addend;
        kernels.push_back(kernel);
      }
    }
  return kernels;
}

/// Returns each kernel alone, and some with an activation.
inline std::vector<Kernel> activated(std::vector<Kernel> kernels) {
  const std::size_t bare = kernels.size();
  for (std::size_t i = 0; i < bare; ++i) {
    if (i % 3 == 0) continue;
    kernels.push_back(kernels[i]);
    kernels.back().epilogue().activation = i % 3 == 1 ? relu : leaky_relu;
  }
  return kernels;
}

/// Returns a kernel for every function, with constants that differ from the usual ones.
inline std::vector<Kernel> pointwise_kernels(KernelKind kind) {
  std::vector<Kernel> kernels;
  for (const PointwiseFunction function : all_pointwise_functions)
    for (Kernel kernel : of_one_shape(kind)) {
      Activation& activation = kernel.as<Activation>();
      activation = tested(function);
      if (function != PointwiseFunction::Clip)
        for (double& constant : activation.constants) constant *= 1.5;
      kernels.push_back(kernel);
    }
  return kernels;
}

/// Returns a kernel for every function of two tensors: of one shape, with a vector of channels for
/// each sample, a map of positions, a row of each map, and both of the latter repeated.
inline std::vector<Kernel> binary_kernels(KernelKind kind) {
  const auto one_along = [](Shape shape, std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) shape[axis] = 1;
    return shape;
  };
  std::vector<Kernel> kernels;
  for (const BinaryFunction function : all_binary_functions)
    for (const Shape& y : odd_shapes) {
      const Shape vector = one_along(y, {Axis::D, Axis::H, Axis::W}), map = one_along(y, {Axis::C}),
                  rows = one_along(y, {Axis::H});
      const std::pair<Shape, Shape> shapes[] = {{y, y},   {y, vector}, {vector, y},  {y, map},
                                                {map, y}, {rows, y},   {vector, map}};
      for (const auto& [first, second] : shapes)
        for (const int of : {0, 1}) {
          if (kind == BinaryForward && of == 1) continue;
          kernels.push_back(
              {.kind = kind, .x = first, .y = y, .attributes = Binary{function, second, of}});
        }
    }
  return kernels;
}

/// AlexNet's exponent and another one, with windows up to more than all channels.
inline std::vector<Kernel> local_responses(KernelKind kind) {
  std::vector<Kernel> kernels;
  const LocalResponse responses[] = {{.size = 5, .alpha = 0.3, .k = 2},
                                     {.size = 1, .alpha = 1, .beta = 0.5},
                                     {.size = 41, .alpha = 9, .beta = 1.2}};
  for (const LocalResponse& response : responses)
    for (const Kernel& kernel : of_one_shape(kind, response)) kernels.push_back(kernel);
  return kernels;
}

/// Returns sums as a Dice loss has them: less at the label than in all.
inline Values class_sums(const Kernel& kernel, Random& random) {
  const auto classes = static_cast<std::size_t>(kernel.x[Axis::C]),
             sets = static_cast<std::size_t>(
                 kernel.as<DiceLossAttributes>().per_sample ? kernel.x[Axis::N] : 1);
  const double positions =
      static_cast<double>(kernel.x.elements()) / static_cast<double>(classes * sets);
  std::uniform_real_distribution<double> unit(0.1, 1);
  std::vector<double> sums(sets * 3 * classes);
  for (std::size_t set = 0; set < sets; ++set)
    for (std::size_t c = set * 3 * classes; c < (set * 3 + 1) * classes; ++c) {
      sums[classes + c] = sums[2 * classes + c] = unit(random) * positions;
      sums[c] = sums[classes + c] * unit(random);
    }
  return sums;
}

/// Returns a kernel for every loss of elements.
inline std::vector<Kernel> element_losses(KernelKind kind) {
  std::vector<Kernel> kernels;
  for (const LossFunction function : all_loss_functions)
    for (const Kernel& kernel : of_one_shape(
             kind, ElementLossAttributes{.loss = tested(function), .terms = 4, .weight = 0.4}))
      kernels.push_back(kernel);
  return kernels;
}

inline std::vector<Kernel> dice_sums() {
  std::vector<Kernel> kernels;
  for (const DiceSumsAttributes& attributes :
       {DiceSumsAttributes{}, DiceSumsAttributes{.ignored = 255},
        DiceSumsAttributes{.per_sample = true}, DiceSumsAttributes{true, 0}})
    for (const Kernel& kernel : of_one_shape(DiceSums, attributes)) kernels.push_back(kernel);
  return kernels;
}

inline std::vector<Kernel> dice_losses() {
  std::vector<Kernel> kernels;
  for (const DiceLossAttributes& attributes :
       {DiceLossAttributes{.epsilon = 1e-5, .weight = 0.4},
        DiceLossAttributes{.epsilon = 1e-5, .ignored = 255},
        DiceLossAttributes{.epsilon = 0.5, .per_sample = true, .divisor = 7},
        DiceLossAttributes{.epsilon = 1e-5, .per_sample = true, .divisor = 3, .ignored = 0}})
    for (const Kernel& kernel : of_one_shape(DiceLoss, attributes)) kernels.push_back(kernel);
  return kernels;
}

/// Returns kernels with each option alone, and with all. The ignored label may be a class.
inline std::vector<Kernel> cross_entropies(KernelKind kind) {
  std::vector<Kernel> kernels;
  for (const CrossEntropyAttributes& attributes :
       {CrossEntropyAttributes{.terms = 4, .smoothing = 0.1},
        CrossEntropyAttributes{.ignored = -100}, CrossEntropyAttributes{.weighted = true},
        CrossEntropyAttributes{
            .terms = 2, .smoothing = 0.3, .ignored = 0, .weighted = true, .weight = 0.4}})
    for (const Kernel& kernel : of_one_shape(kind, attributes)) kernels.push_back(kernel);
  return kernels;
}

/// Lets every third label be one that does not count.
inline void ignore_some(Values& labels, std::int64_t ignored) {
  auto& values = std::get<std::vector<std::int32_t>>(labels);
  for (std::size_t i = 1; i < values.size(); i += 3) values[i] = static_cast<std::int32_t>(ignored);
}

inline std::vector<Kernel> copies() {
  Random random(7);
  std::vector<Kernel> kernels;
  for (int i = 0; i < 60; ++i) {
    Kernel kernel{.kind = CopyRegion};
    CopyAttributes& copy = kernel.as<CopyAttributes>();
    copy.accumulate = i % 2 == 1;
    kernel.type = std::array{DataType::F32, DataType::F64, DataType::I32, DataType::F16,
                             DataType::BF16}[static_cast<std::size_t>(i) % 5];
    for (Axis axis : all_axes) {
      const std::size_t a = static_cast<std::size_t>(axis);
      kernel.x[axis] = between(random, 1, axis == Axis::C ? 40 : 5);
      kernel.y[axis] = between(random, 0, 2) == 0 ? between(random, 1, axis == Axis::C ? 40 : 5)
                                                  : kernel.x[axis];
      copy.region[axis] = std::min(kernel.x[axis], kernel.y[axis]);
      if (between(random, 0, 1) == 0) copy.region[axis] = between(random, 1, copy.region[axis]);
      copy.from[a] = between(random, 0, kernel.x[axis] - copy.region[axis]);
      copy.to[a] = between(random, 0, kernel.y[axis] - copy.region[axis]);
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

inline std::vector<Kernel> conversions(KernelKind kind) {
  std::vector<Kernel> kernels = of_one_shape(kind);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    kernels[i].type = i % 2 ? DataType::F16 : DataType::BF16;
  return kernels;
}

/// Returns kernels for pieces of enlargements and reductions, from anywhere in the tensor.
inline std::vector<Kernel> upsamplings(KernelKind kind) {
  Random random(static_cast<unsigned>(kind));
  std::vector<Kernel> kernels;
  for (int i = 0; i < 40; ++i) {
    Kernel kernel{.kind = kind};
    kernel.x[Axis::N] = kernel.y[Axis::N] = between(random, 1, 3);
    kernel.x[Axis::C] = kernel.y[Axis::C] = between(random, 1, 19);
    for (Axis axis : spatial_axes) {
      if (axis == Axis::D && i % 3 != 0) continue;
      const std::int64_t extent = between(random, 1, 6);
      std::int64_t outputs = between(random, 1, (i % 3 == 0 ? 2 : 4) * extent);
      Scale scale =
          scale_of({.ratio = i % 2 == 0 ? Ratio{outputs, extent} : Ratio{between(random, 1, 3), 2},
                    .linear = i % 4 != 0,
                    .coordinates = static_cast<Coordinates>(between(random, 0, 5)),
                    .rounding = static_cast<Rounding>(between(random, 0, 3))},
                   extent, outputs);
      if (i % 5 == 4) {  // padding with elements of the input
        const std::int64_t before = between(random, 0, extent - 1),
                           behind = between(random, 0, extent - 1);
        outputs = before + extent + behind;
        scale = {.start = -before, .ends = i % 2 == 0 ? Ends::Clamp : Ends::Mirror};
      }
      Interval output{between(random, 0, outputs - 1), 0};
      output.end = between(random, output.begin + 1, outputs);
      kernel.x[axis] = needed(scale, output, extent).size();
      kernel.y[axis] = output.size();
      kernel.as<UpsampleAttributes>().scales[static_cast<std::size_t>(spatial_index(axis))] =
          local_scale(scale, output, extent);
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

/// Returns kernels that reduce some axes, and the greatest of all channels.
inline std::vector<Kernel> reductions(KernelKind kind) {
  const std::vector<std::vector<Axis>> choices{{Axis::C},
                                               {Axis::W},
                                               {Axis::H, Axis::D},
                                               {Axis::C, Axis::H},
                                               {Axis::C, Axis::D, Axis::H, Axis::W}};
  std::vector<Kernel> kernels;
  for (const Shape& x : odd_shapes)
    for (const std::vector<Axis>& axes : choices)
      for (const Reduction function : {Reduction::Mean, Reduction::Max}) {
        Kernel kernel{.kind = kind, .x = x, .y = x};
        for (const Axis axis : axes) kernel.y[axis] = 1;
        if (function == Reduction::Max && kernel.y.elements() * x[Axis::C] != x.elements())
          continue;
        kernel.attributes = ReduceAttributes{function, function == Reduction::Max ? 1.0 : 70.0};
        kernels.push_back(kernel);
      }
  return kernels;
}

/// Returns shuffles, and rearrangements in both directions of pieces that begin and end anywhere.
inline std::vector<Kernel> rearrangements(KernelKind kind) {
  Random random(static_cast<unsigned>(kind));
  std::vector<Kernel> kernels;
  for (int i = 0; i < 60; ++i) {
    Kernel kernel{.kind = kind};
    Rearrangement by;
    by.what = std::array{Rearranges::Shuffle, Rearranges::ToSpace,
                         Rearranges::ToDepth}[static_cast<std::size_t>(i) % 3];
    by.order = between(random, 0, 1) == 0 ? DepthOrder::CRD : DepthOrder::DCR;
    by.groups = by.what == Rearranges::Shuffle ? between(random, 1, 5) : 1;
    Shape wide, deep;
    wide[Axis::N] = deep[Axis::N] = between(random, 1, 3);
    wide[Axis::C] = deep[Axis::C] = between(random, 1, 9) * by.groups;
    for (Axis axis : spatial_axes) {
      const auto a = static_cast<std::size_t>(spatial_index(axis));
      deep[axis] = wide[axis] = between(random, 1, 4);
      if (by.what == Rearranges::Shuffle) continue;
      by.block[a] = between(random, 1, 3);
      deep[Axis::C] *= by.block[a];
      wide[axis] *= by.block[a];
      if (by.what == Rearranges::ToDepth) continue;
      by.phase[a] = between(random, 0, by.block[a] - 1);
      const std::int64_t most = wide[axis] - by.phase[a];  // ends within the last block
      wide[axis] = between(random, std::max<std::int64_t>(1, most - by.block[a] + 1), most);
    }
    kernel.x = by.what == Rearranges::ToDepth ? wide : deep;
    kernel.y = by.what == Rearranges::ToDepth ? deep : wide;
    kernel.attributes = by;
    kernels.push_back(kernel);
  }
  return kernels;
}

inline std::vector<Kernel> cases_of(KernelKind kind) {
  switch (kind) {
    case ConvolutionForward: return activated(convolutions(kind));
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter: return convolutions(kind);
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward: return pools(kind);
    case BatchNormStatistics:
    case BatchNormMoments: return batch_norms(kind);
    case BatchNormForward:
    case BatchNormBackwardSums:
    case BatchNormBackward: return fused_batch_norms(kind, batch_norms(kind));
    case BatchNormInference:
      return fused_batch_norms(kind, of_one_shape(kind, NormalizationAttributes{.epsilon = 1e-5}));
    case SpatialMeanForward:
    case SpatialMeanBackward: return of_one_shape(kind, MeanAttributes{70});
    case PointwiseForward:
    case PointwiseBackward: return pointwise_kernels(kind);
    case Dropout: return of_one_shape(kind, DropoutAttributes{0.7});
    case LocalResponseForward:
    case LocalResponseBackward: return local_responses(kind);
    case RunningAverage: return of_one_shape(kind, RunningAverageAttributes{.momentum = 0.1});
    case BatchNormRunningSums:
      return of_one_shape(kind, NormalizationAttributes{.sets = {.batch = 6}});
    case LayerNormForward: return of_one_shape(kind, LayerNormAttributes{1e-5});
    case LayerNormBackward:
    case LayerNormGradient: return of_one_shape(kind, LayerNormAttributes{});
    case DiceSums: return dice_sums();
    case DiceLoss: return dice_losses();
    case PreluForward:
    case PreluBackward:
    case PreluGradient:
    case SoftmaxForward:
    case SoftmaxBackward: return of_one_shape(kind);
    case SoftmaxCrossEntropy: return of_one_shape(kind, LossAttributes{.terms = 4, .weight = 0.4});
    case LabelWeights:
    case WeightedCrossEntropy: return cross_entropies(kind);
    case ElementwiseLoss: return element_losses(kind);
    case BiasAdd:
    case BiasGradient: return activated(of_one_shape(kind));
    case Add:
    case Fill:
    case SgdMomentum:
    case Sgd:
    case SgdNesterov:
    case Adam:
    case AdamW:
    case SquaredNorms:
    case Lars:
    case Unscale:
    case AdjustLossScale: return of_one_shape(kind);
    case BinaryForward:
    case BinaryBackward: return binary_kernels(kind);
    case Convert:
    case Widen: return conversions(kind);
    case CopyRegion: return copies();
    case UpsampleForward:
    case UpsampleBackward: return upsamplings(kind);
    case ReduceForward:
    case ReduceBackward: return reductions(kind);
    case RearrangeForward:
    case RearrangeBackward: return rearrangements(kind);
  }
  return {};  // a kind without cases fails the test
}

// ---------------------------------------------------------------- operands and tolerances

/// Returns sums and sums of squares with means in [-1, 1] and variances in [1, 2].
inline Values moments(const Kernel& kernel, Random& random) {
  const std::int64_t channels = kernel.x[Axis::C];
  std::vector<double> sums(static_cast<std::size_t>(kernel.sets().sets * 2 * channels));
  std::uniform_real_distribution<double> unit(-1, 1);
  for (std::int64_t set = 0; set < kernel.sets().sets; ++set) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = unit(random), variance = 1.5 + unit(random) / 2,
                   terms =
                       kernel.sets().terms(set) / static_cast<double>(kernel.sets().group_channels);
      sums[static_cast<std::size_t>(set * 2 * channels + c)] = mean * terms;
      sums[static_cast<std::size_t>((set * 2 + 1) * channels + c)] =
          (variance + mean * mean) * terms;
    }
  }
  return sums;
}

/// Returns the bound below which the kernel's integer inputs lie: places in a window, or labels.
inline std::int64_t integer_bound(const Kernel& kernel) {
  return kernel.kind == MaxPoolBackward ? taps(kernel)
         : kernel.kind == CopyRegion    ? 100
                                        : kernel.x[Axis::C];
}

inline std::vector<Values> operands(const Kernel& kernel, Random& random) {
  std::vector<Values> reads;
  for (const Operand& operand : kernel.operands().reads) {
    reads.push_back(random_values(operand, random, integer_bound(kernel)));
  }
  if (kernel.kind == MaxPoolForward) {  // many equal elements: the first maximum must win
    map(reads[0], [](double value) { return std::round(value * 2); });
  }
  const auto* binary = std::get_if<Binary>(&kernel.attributes);
  if (binary && binary->function == BinaryFunction::Divide)  // no divisor is near zero
    for (std::size_t i = 0; i + 1 < reads.size() || (kernel.kind == BinaryForward && i < 2); ++i)
      map(reads[i], [](double value) { return value + (value < 0 ? -1 : 1); });
  if (kernel.kind == ReduceBackward && reads.size() == 2)  // several elements are the greatest
    map(reads[0], [](double value) { return std::round(value * 2); });
  if (const auto* entropy = std::get_if<CrossEntropyAttributes>(&kernel.attributes)) {
    std::size_t at = kernel.kind == LabelWeights ? 0 : 1;
    if (entropy->ignored) ignore_some(reads[at], *entropy->ignored);
    if (entropy->weighted) map(reads[++at], [](double weight) { return std::abs(weight); });
    if (kernel.kind == WeightedCrossEntropy && entropy->reads_divisor())
      reads[++at] = std::vector<double>{4};
  }
  if (kernel.kind == DiceSums && kernel.as<DiceSumsAttributes>().ignored)
    ignore_some(reads[1], *kernel.as<DiceSumsAttributes>().ignored);
  if (kernel.kind == DiceLoss) {
    reads[1] = class_sums(kernel, random);
    if (const auto& ignored = kernel.as<DiceLossAttributes>().ignored)
      ignore_some(reads[0], *ignored);
  }
  if (kernel.kind == PointwiseBackward &&
      kernel.as<Activation>().function == PointwiseFunction::Clip) {
    // Most clipped elements lie at the limits.
    map(reads[0], [](double y) { return std::clamp(y, double{-0.3F}, double{0.6F}); });
  }
  const auto* pointwise = std::get_if<Activation>(&kernel.attributes);
  const bool reads_x =
      pointwise && (kernel.kind == PointwiseForward || reads_input(pointwise->function));
  if (reads_x && std::isfinite(row_of(pointwise->function).domain))
    map(reads[0], [](double x) { return std::abs(x) + 0.1; });
  if (kernel.kind == BatchNormMoments) reads[0] = moments(kernel, random);
  if (kernel.kind == BatchNormInference || kernel.kind == BatchNormRunningSums) {
    auto& running =  // means, then variances
        std::get<std::vector<float>>(reads[kernel.kind == BatchNormInference ? 1 : 0]);
    for (std::size_t i = running.size() / 2; i < running.size(); ++i)
      running[i] = 1 + running[i] / 2;
  }
  if (kernel.kind == BatchNormForward) reads[1] = moments(kernel, random);
  if (kernel.kind == Adam || kernel.kind == AdamW)  // Adam's running means of squares are positive
    for (float& value : std::get<std::vector<float>>(reads[3])) value = 1 + value / 2;
  if (kernel.kind == Unscale) {  // some gradients are not finite
    for (std::size_t i = 0; i < size_of(reads[0]); i += 7)
      std::get<std::vector<float>>(reads[0])[i] = std::numeric_limits<float>::infinity();
    reads[1] = std::vector<double>{1024, 3};
    reads[2] = std::vector<double>{2};
  }
  if (kernel.kind == AdjustLossScale)
    reads = {std::vector<double>{1024, 3}, std::vector<double>{kernel.x[Axis::N] > 1 ? 2.0 : 0.0}};
  if (kernel.scaled() && !is_update(kernel.kind)) reads.back() = std::vector<double>{1024, 3};
  if (kernel.scaled() && is_update(kernel.kind))
    reads.back() = std::vector<double>{kernel.x[Axis::N] > 1 ? 2.0 : 0.0};  // number of overflows
  if (kernel.kind == Lars) reads[3] = std::vector<double>{4, 9};
  if (kernel.kind == BatchNormBackwardSums || kernel.kind == BatchNormBackward)
    reads[2] = moments(kernel, random);
  return reads;
}

/// Returns the most outputs that mix one input of an upsampling along one axis.
inline std::int64_t most_readers(const Scale& scale, std::int64_t inputs, std::int64_t outputs) {
  if (inputs == 0 || outputs == 0) return 0;
  std::vector<std::int64_t> readers(static_cast<std::size_t>(inputs), 0);
  for (std::int64_t output = 0; output < outputs; ++output) {
    const Mixture mix = mixture(scale, output);
    const std::int64_t before = inside(scale.ends, mix.before, inputs),
                       after = inside(scale.ends, mix.after, inputs);
    ++readers[static_cast<std::size_t>(before)];
    if (after != before) ++readers[static_cast<std::size_t>(after)];
  }
  return *std::ranges::max_element(readers);
}

/// Returns how many products are added up to one output.
inline std::int64_t accumulation_length(const Kernel& kernel) {
  std::int64_t length = 8;  // a few roundings of values of order 1
  switch (kernel.kind) {
    case ConvolutionForward: return kernel.x[Axis::C] * taps(kernel);
    case ConvolutionBackwardData: return kernel.y[Axis::C] * taps(kernel);
    case ConvolutionBackwardFilter: return kernel.y[Axis::N] * positions(kernel.y);
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward: return taps(kernel);
    case ReduceForward:
      return length + kernel.x.elements() / std::max<std::int64_t>(1, kernel.y.elements());
    case BinaryBackward:
      return length +
             kernel.y.elements() / std::max<std::int64_t>(1, kernel.differentiated().elements());
    case PreluGradient:
    case LayerNormGradient:
    case BatchNormBackwardSums: return kernel.x[Axis::N] * positions(kernel.x);
    case UpsampleBackward:
      for (const Axis axis : spatial_axes)
        length *= most_readers(
            kernel.as<UpsampleAttributes>().scales[static_cast<std::size_t>(spatial_index(axis))],
            kernel.x[axis], kernel.y[axis]);
      return length;
    default: return length;
  }
}

/// Operands are at most 1 in size (coefficients at most about 2). Each of the L additions rounds a
/// partial sum that is rarely larger than sqrt(L). So the errors add up like a random walk to about
/// L * 2^-24. For sums in double 2^-53 replaces 2^-24. A cross-entropy adds in double the losses of
/// positions, each of which has been rounded to 2^-24.
inline double tolerance(const Kernel& kernel, DataType type) {
  const bool adds_positions = type == DataType::F64 && (kernel.kind == SoftmaxCrossEntropy ||
                                                        kernel.kind == WeightedCrossEntropy);
  const bool exact =
      type == DataType::F64 && kernel.kind != BatchNormBackwardSums && !adds_positions;
  const double length =
      static_cast<double>(exact ? kernel.x.elements() : accumulation_length(kernel));
  const bool sums_squares = kernel.kind == SquaredNorms || kernel.kind == ElementwiseLoss ||
                            kernel.kind == BatchNormStatistics;
  // A sum of L squares is of the order of L, not of sqrt(L).
  const double partial_sum =
      exact && sums_squares ? std::sqrt(length)
      : adds_positions ? std::sqrt(static_cast<double>(kernel.x.elements() / kernel.x[Axis::C]))
                       : 1;
  return partial_sum * (length + 8) * (exact ? 0x1p-51 : 0x1p-23);
}

/// Returns the relative distance of neighbouring stored numbers. If rounding differs, two backends
/// are that far apart.
inline double spacing(DataType type) {
  return type == DataType::F16 ? 0x1p-10 : type == DataType::BF16 ? 0x1p-7 : 0;
}

/// A gradient of weights may have been rounded like the tensors that it is made of, and a sum may
/// have been rounded before a bias of up to 1 was added.
inline void expect_equal(const Kernel& kernel, const std::vector<Values>& actual,
                         const std::vector<Values>& expected) {
  const Operands all = kernel.operands();
  const auto* convolution = std::get_if<ConvolutionAttributes>(&kernel.attributes);
  const bool adds_bias = convolution && convolution->bias;
  for (std::size_t w = 0; w < all.writes.size(); ++w) {
    const double allowed =
        all.writes[w].type == DataType::I32 ? 0 : tolerance(kernel, all.writes[w].type);
    const DataType stored =
        kernel.kind == ConvolutionBackwardFilter ? kernel.type : all.writes[w].type;
    for (std::size_t i = 0; i < size_of(expected[w]); ++i) {
      if (at(actual[w], i) == at(expected[w], i)) continue;  // equal values may be infinite
      const double scale = kernel.scaled() ? 1024 : 1;
      const double rounding =
          spacing(stored) * (std::abs(at(expected[w], i)) + (adds_bias ? 1 : 0));
      ASSERT_NEAR(at(actual[w], i), at(expected[w], i), scale * allowed + rounding)
          << kernel.key() << ", write " << w << ", element " << i;
    }
  }
}

/// Returns a context whose region lies inside a larger global tensor.
inline KernelContext inner_context(const Kernel& kernel) {
  KernelContext context = whole_context(kernel);
  for (Axis axis : all_axes) {
    context.region[axis] = {2, 2 + kernel.y[axis]};
    context.global[axis] = kernel.y[axis] + 5;
  }
  return context;
}

inline void compare(Backend& backend, const Kernel& kernel, Random& random) {
  const std::vector<Values> reads = operands(kernel, random);
  std::vector<Values> before;
  for (const Operand& operand : kernel.operands().writes)
    before.push_back(random_values(operand, random, 1000));
  const auto expected =
      run(*make_reference_backend(), kernel, reads, inner_context(kernel), before);
  std::vector<std::string> choices = backend.choices(kernel);
  choices.insert(choices.begin(), std::string());  // the default rule
  for (const std::string& choice : choices) {
    SCOPED_TRACE(choice);
    expect_equal(kernel, run(backend, kernel, reads, inner_context(kernel), before, choice),
                 expected);
  }
}

}  // namespace stratplan::test::kernel_cases
