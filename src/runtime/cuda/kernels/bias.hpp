#pragma once
// Kernels that add a bias for each channel and apply an activation after it, and their gradients.
#include "runtime/cuda/kernels/activation.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

template <class T>
struct BiasSum {
  const T* x;
  const float* bias;
  T* y;
  FusedActivation activation;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    float biases[width];
    for (int k = 0; k < width; ++k) biases[k] = bias[strip.channel + k];
    Pack<float, width> value[4];
    const auto fetch = [&](int slot, std::int64_t i) { value[slot] = load<width>(x + i); };
    in_batches<4>(strip, fetch, [&](int slot, std::int64_t i) {
      for (int k = 0; k < width; ++k)
        value[slot][k] = activation.result(value[slot][k] + biases[k]);
      store(y + i, value[slot]);
    });
  }
};
template <class T, class Launch>
void bias_add(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T* x = call.read<T>(0);
  T* y = call.write<T>(0);
  for_strips(launch, one_set(kernel.y), kernel.y[Axis::C], {x, y},
             BiasSum<T>{x, call.read(1), y, FusedActivation(kernel)});
}

template <class T>
struct BiasGradientTerm {
  const T *dy, *y;  ///< y: the activation's output; null without an activation
  T* dx;            ///< gradient of the activation's input; null without an activation
  FusedActivation activation;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      auto gradient = load<width>(dy + i);
      if (y != nullptr) {
        const auto result = load<width>(y + i);
        for (int k = 0; k < width; ++k) gradient[k] = activation.passed(result[k], gradient[k]);
        store(dx + i, gradient);
      }
      for (int k = 0; k < width; ++k) sum[0][k] += gradient[k];
    }
  }
};
struct BiasGradientFinish {
  float* dbias;
  SP_DEVICE void operator()(std::int64_t, std::int64_t channel, const double (&sum)[1]) const {
    dbias[channel] = static_cast<float>(sum[0]);
  }
};
template <class T, class Launch>
void bias_gradient(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const bool activated = kernel.epilogue().activation.has_value();
  const T *dy = call.read<T>(0), *y = activated ? call.read<T>(1) : nullptr;
  T* dx = activated ? call.write<T>(1) : nullptr;
  sum_strips<1>(launch, one_set(kernel.y), kernel.y[Axis::C], {dy, y, dx}, call.workspace,
                BiasGradientTerm<T>{dy, y, dx, FusedActivation(kernel)},
                BiasGradientFinish{call.write(0)});
}

}  // namespace stratplan::cuda_kernels
