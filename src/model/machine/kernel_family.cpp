#include "model/machine/kernel_family.hpp"

#include <algorithm>
#include <array>

#include "model/partition/program/contraction.hpp"

namespace stratplan {

std::string_view name_of(KernelFamily family) {
  constexpr std::array<std::string_view, kernel_family_count> names{
      "conv_1x1", "conv_3x3", "conv_large",    "conv_grouped",         "conv_depthwise",
      "conv_3d",  "product",  "normalization", "sample_normalization", "elementwise",
      "pooling",  "update",   "loss"};
  return names[static_cast<std::size_t>(family)];
}

namespace {

KernelFamily family_of_contraction(const Kernel& kernel) {
  /// Convolutions of images with fewer channels are bound by loading windows, not by products.
  constexpr std::int64_t few_channels = 8;
  constexpr std::int64_t large_window = 5;
  const auto& [windows, bias, groups, epilogue] = kernel.as<ConvolutionAttributes>();
  const std::int64_t channels = kernel.x[Axis::C] / groups;
  if (groups > 1)
    return channels == 1 ? KernelFamily::ConvolutionDepthwise : KernelFamily::ConvolutionGrouped;
  if (kernel.y[Axis::D] * kernel.y[Axis::H] * kernel.y[Axis::W] == 1) return KernelFamily::Product;
  const auto& [depth, height, width] = windows;
  if (depth.kernel > 1) return KernelFamily::Convolution3d;
  const std::int64_t longest = std::max(height.kernel, width.kernel);
  if (longest == 1) return KernelFamily::Convolution1x1;
  return longest >= large_window || channels < few_channels ? KernelFamily::ConvolutionLarge
                                                            : KernelFamily::Convolution3x3;
}

}  // namespace

KernelFamily family_of(const Kernel& kernel) {
  using enum KernelKind;
  if (is_contraction(kernel.kind)) return family_of_contraction(kernel);
  if (is_update(kernel.kind)) return KernelFamily::Update;
  switch (kernel.kind) {
    case BatchNormStatistics:
    case BatchNormForward:
    case BatchNormBackwardSums:
    case BatchNormBackward:
    case BatchNormInference:
    case BatchNormMoments:
    case BatchNormRunningSums:
      return kernel.sets().set_samples == 1 ? KernelFamily::SampleNormalization
                                            : KernelFamily::Normalization;
    case LayerNormForward:
    case LayerNormBackward:
    case LayerNormGradient: return KernelFamily::SampleNormalization;
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward:
    case SpatialMeanForward:
    case SpatialMeanBackward:
    case UpsampleForward:
    case UpsampleBackward:
    case ReduceForward:
    case ReduceBackward:
    case RearrangeForward:
    case RearrangeBackward:
    case SoftmaxForward:
    case SoftmaxBackward: return KernelFamily::Pooling;
    case SoftmaxCrossEntropy:
    case WeightedCrossEntropy:
    case LabelWeights:
    case ElementwiseLoss:
    case DiceSums:
    case DiceLoss: return KernelFamily::Loss;
    default: return KernelFamily::Elementwise;
  }
}

std::string_view name_of(Direction direction) {
  constexpr std::array<std::string_view, direction_count> names{"forward", "backward_data",
                                                                "backward_filter"};
  return names[static_cast<std::size_t>(direction)];
}

Direction direction_of(KernelKind kind) {
  using enum KernelKind;
  switch (kind) {
    case ConvolutionBackwardFilter: return Direction::BackwardFilter;
    case ConvolutionBackwardData:
    case BiasGradient:
    case MaxPoolBackward:
    case AveragePoolBackward:
    case SpatialMeanBackward:
    case BatchNormBackwardSums:
    case BatchNormBackward:
    case PointwiseBackward:
    case PreluBackward:
    case PreluGradient:
    case SoftmaxBackward:
    case LocalResponseBackward:
    case UpsampleBackward:
    case BinaryBackward:
    case LayerNormBackward:
    case LayerNormGradient:
    case ReduceBackward:
    case RearrangeBackward: return Direction::BackwardData;
    default: return is_update(kind) ? Direction::BackwardData : Direction::Forward;
  }
}

}  // namespace stratplan
