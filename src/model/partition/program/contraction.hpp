#pragma once
// Kernels that are matrix products: most of a network's arithmetic, and in libraries that choose
// among algorithms the part that is theirs.
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// Convolutions in any direction, which fully connected layers are, too.
constexpr bool is_contraction(KernelKind kind) {
  return kind == KernelKind::ConvolutionForward || kind == KernelKind::ConvolutionBackwardData ||
         kind == KernelKind::ConvolutionBackwardFilter;
}

}  // namespace stratplan
