#pragma once
// An activation behind another kernel, in both directions.
#include "model/partition/kernel.hpp"
#include "runtime/cuda/own/launch.hpp"

namespace stratplan::own {

struct FusedActivation {
  Activation activation;
  float slope;

  explicit FusedActivation(const Kernel& kernel)
      : activation(kernel.activation), slope(static_cast<float>(kernel.slope)) {}
  SP_DEVICE float result(float x) const { return passed(x, x); }
  /// Gradient of what was activated, from that of the result y.
  SP_DEVICE float passed(float y, float dy) const {
    if (activation == Activation::None || y > 0) return dy;
    return activation == Activation::Relu ? 0 : dy * slope;
  }
};

}  // namespace stratplan::own
