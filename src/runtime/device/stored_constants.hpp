#pragma once
#include "model/network/functions/pointwise.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {

/// Returns a pointwise function's constants as its kernels use them on tensors of `type`. The
/// constants are rounded to that type if the function's row says so (stored_constants).
inline pointwise::Constants<double> stored_constants(const Activation& pointwise, DataType type) {
  pointwise::Constants<double> constants = pointwise.constants;
  if (!row_of(pointwise.function).stored_constants) return constants;
  for (double& constant : constants) {
    const auto single = static_cast<float>(constant);
    constant = is_narrow(type) ? nearest(type, single) : single;
  }
  return constants;
}

}  // namespace stratplan
