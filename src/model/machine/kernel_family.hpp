#pragma once
// Families of kernels. Kernels of one family attain similar shares of a device's rates, so their
// estimates have constants in common, and errors in common.
#include <string_view>

#include "model/partition/program/kernel.hpp"

namespace stratplan {

enum class KernelFamily : int {
  Convolution1x1,        ///< window of one position; a matrix product of positions and channels
  Convolution3x3,        ///< windows of 2 to 4 positions along an axis
  ConvolutionLarge,      ///< windows of 5 or more positions along an axis, or few input channels
  ConvolutionGrouped,    ///< several groups, each with several input channels
  ConvolutionDepthwise,  ///< one input channel per group
  Convolution3d,         ///< windows of several positions along the depth
  Product,               ///< fully connected: one window covers each sample
  Normalization,         ///< batch normalization
  SampleNormalization,   ///< layer, group and instance normalization
  Elementwise,  ///< activations, sums and products of tensors, dropout, copies, conversions
  Pooling,      ///< pooling, means, other reductions, resizing, rearrangements, softmax
  Update,       ///< optimizers and running statistics
  Loss,
};
inline constexpr int kernel_family_count = static_cast<int>(KernelFamily::Loss) + 1;

/// Returns "conv_1x1", "conv_3x3", "conv_large", "conv_grouped", "conv_depthwise", "conv_3d",
/// "product", "normalization", "sample_normalization", "elementwise", "pooling", "update" or
/// "loss".
std::string_view name_of(KernelFamily family);
KernelFamily family_of(const Kernel& kernel);

/// What a kernel computes. Kinds that are no contractions have a forward and a backward direction;
/// sums of gradients and optimizers count as backward.
enum class Direction : int { Forward, BackwardData, BackwardFilter };
inline constexpr int direction_count = static_cast<int>(Direction::BackwardFilter) + 1;
/// Returns "forward", "backward_data" or "backward_filter".
std::string_view name_of(Direction direction);
Direction direction_of(KernelKind kind);

}  // namespace stratplan
