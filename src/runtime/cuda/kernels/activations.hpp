#pragma once
// PReLU, whose slopes are parameters.
#include "runtime/cuda/kernels/support/elements.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"

namespace stratplan::cuda_kernels {

/// Sets `to` to `from` where x is positive, and to slope * from elsewhere. Each channel has a
/// slope. `from` is x in the forward pass and dy in the backward pass.
template <class T>
struct Prelu {
  const T *x, *from;
  const float* slope;
  T* to;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    float slopes[width];
    for (int k = 0; k < width; ++k) slopes[k] = slope[strip.channel + k];
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto sign = load<width>(x + i);
      auto value = load<width>(from + i);
      for (int k = 0; k < width; ++k) value[k] = sign[k] > 0 ? value[k] : slopes[k] * value[k];
      store(to + i, value);
    }
  }
};
template <class T, class Launch>
void prelu_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T* x = call.read<T>(0);
  T* y = call.write<T>(0);
  for_strips(launch, one_set(kernel.x), kernel.x[Axis::C], {x, y}, Prelu<T>{x, x, call.read(1), y});
}
template <class T, class Launch>
void prelu_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T *x = call.read<T>(0), *dy = call.read<T>(1);
  T* dx = call.write<T>(0);
  for_strips(launch, one_set(kernel.x), kernel.x[Axis::C], {x, dy, dx},
             Prelu<T>{x, dy, call.read(2), dx});
}

template <class T>
struct PreluGradientTerm {
  const T *x, *dy;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto value = load<width>(x + i), gradient = load<width>(dy + i);
      for (int k = 0; k < width; ++k)
        if (!(value[k] > 0)) sum[0][k] += double{value[k]} * gradient[k];
    }
  }
};
/// to[set][channel] = sum / divisor
template <class T>
struct Quotient {
  T* to;
  std::int64_t channels;
  double divisor;
  SP_DEVICE void operator()(std::int64_t set, std::int64_t channel, const double (&sum)[1]) const {
    to[set * channels + channel] = T(static_cast<float>(sum[0] / divisor));
  }
};
template <class T, class Launch>
void prelu_gradient(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T *x = call.read<T>(0), *dy = call.read<T>(1);
  const std::int64_t channels = kernel.x[Axis::C];
  sum_strips<1>(launch, one_set(kernel.x), channels, {x, dy}, call.workspace,
                PreluGradientTerm<T>{x, dy}, Quotient<float>{call.write(0), channels, 1});
}

}  // namespace stratplan::cuda_kernels
