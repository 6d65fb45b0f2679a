#pragma once
// Kernels that are matrix products. They do most of a network's arithmetic, and libraries choose
// among several algorithms for them.
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// Whether a kernel is a convolution in any direction. Fully connected layers are convolutions too.
constexpr bool is_contraction(KernelKind kind) {
  return kind == KernelKind::ConvolutionForward || kind == KernelKind::ConvolutionBackwardData ||
         kind == KernelKind::ConvolutionBackwardFilter;
}

}  // namespace stratplan
