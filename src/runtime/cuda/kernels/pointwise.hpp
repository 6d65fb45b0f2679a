#pragma once
// Pointwise functions (model/network/functions/pointwise.hpp).
#include <cmath>

#include "runtime/cuda/kernels/support/elements.hpp"
#include "runtime/device/stored_constants.hpp"

namespace stratplan::cuda_kernels {

struct Math {
  static SP_DEVICE float exp(float x) { return std::exp(x); }
  static SP_DEVICE float expm1(float x) { return std::expm1(x); }
  static SP_DEVICE float log1p(float x) { return std::log1p(x); }
  static SP_DEVICE float log(float x) { return std::log(x); }
  static SP_DEVICE float tanh(float x) { return std::tanh(x); }
  static SP_DEVICE float erf(float x) { return std::erf(x); }
  static SP_DEVICE float sqrt(float x) { return std::sqrt(x); }
};

template <class Row>
struct RowValue {
  pointwise::Constants<float> constants;
  SP_DEVICE float operator()(float x) const { return Row::template value<Math>(x, constants); }
};
template <class Row>
struct RowGradient {
  pointwise::Constants<float> constants;
  SP_DEVICE float operator()(float read, float dy) const {
    return Row::template gradient<Math>(read, dy, constants);
  }
};

inline pointwise::Constants<float> constants_of(const Kernel& kernel) {
  const auto [first, second] = stored_constants(kernel.as<Activation>(), kernel.type);
  return {static_cast<float>(first), static_cast<float>(second)};
}

template <class T, class Launch>
void pointwise_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  visit_row(kernel.as<Activation>().function, [&]<class Row>(Row) {
    map<T>(kernel, call, launch, RowValue<Row>{constants_of(kernel)});
  });
}
template <class T, class Launch>
void pointwise_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  visit_row(kernel.as<Activation>().function, [&]<class Row>(Row) {
    map2<T>(kernel, call, launch, RowGradient<Row>{constants_of(kernel)});
  });
}

}  // namespace stratplan::cuda_kernels
