#pragma once
// An activation function that is fused into the kernel before it, in the forward and backward
// passes.
#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/support/launch.hpp"

namespace stratplan::cuda_kernels {

struct FusedActivation {
  float slope;  ///< factor of negative inputs

  explicit FusedActivation(const Kernel& kernel)
      : slope(static_cast<float>(kernel.epilogue().slope())) {}
  SP_DEVICE float result(float x) const { return passed(x, x); }
  /// Returns the gradient of the activation's input, from the output y and its gradient dy.
  SP_DEVICE float passed(float y, float dy) const {
    if (y > 0) return dy;
    return slope == 0 ? 0 : dy * slope;
  }
};

}  // namespace stratplan::cuda_kernels
