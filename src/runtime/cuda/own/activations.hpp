#pragma once
// Activations that are kernels of their own.
#include <cmath>

#include "runtime/cuda/own/elements.hpp"
#include "runtime/cuda/own/strips.hpp"

namespace stratplan::own {

template <class T, class Launch>
void relu_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map<T>(kernel, call, launch, [] SP_DEVICE(float x) -> float { return x > 0 ? x : 0; });
}
template <class T, class Launch>
void relu_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map2<T>(kernel, call, launch,
          [] SP_DEVICE(float y, float dy) -> float { return y > 0 ? dy : 0; });
}
template <class T, class Launch>
void leaky_relu_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float slope = static_cast<float>(kernel.scalar);
  map<T>(kernel, call, launch,
         [slope] SP_DEVICE(float x) -> float { return x > 0 ? x : x * slope; });
}
template <class T, class Launch>
void leaky_relu_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float slope = static_cast<float>(kernel.scalar);
  map2<T>(kernel, call, launch,
          [slope] SP_DEVICE(float y, float dy) -> float { return y > 0 ? dy : dy * slope; });
}
template <class T, class Launch>
void sigmoid_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map<T>(kernel, call, launch, [] SP_DEVICE(float x) -> float { return 1 / (1 + std::exp(-x)); });
}
template <class T, class Launch>
void sigmoid_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map2<T>(kernel, call, launch,
          [] SP_DEVICE(float y, float dy) -> float { return dy * y * (1 - y); });
}
template <class T, class Launch>
void tanh_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map<T>(kernel, call, launch, [] SP_DEVICE(float x) -> float { return std::tanh(x); });
}
template <class T, class Launch>
void tanh_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  map2<T>(kernel, call, launch,
          [] SP_DEVICE(float y, float dy) -> float { return dy * (1 - y * y); });
}
template <class T, class Launch>
void elu_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float alpha = static_cast<float>(kernel.scalar);
  map<T>(kernel, call, launch,
         [alpha] SP_DEVICE(float x) -> float { return x > 0 ? x : alpha * std::expm1(x); });
}
template <class T, class Launch>
void elu_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float alpha = static_cast<float>(kernel.scalar);
  map2<T>(kernel, call, launch,
          [alpha] SP_DEVICE(float y, float dy) -> float { return y > 0 ? dy : dy * (y + alpha); });
}
/// What is no number stays none.
template <class T, class Launch>
void clip_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float low = T(static_cast<float>(kernel.scalar)),
              high = T(static_cast<float>(kernel.maximum));
  map<T>(kernel, call, launch, [low, high] SP_DEVICE(float x) -> float {
    return x < low ? low : high < x ? high : x;
  });
}
/// Nothing passes at the limits themselves.
template <class T, class Launch>
void clip_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const float low = T(static_cast<float>(kernel.scalar)),
              high = T(static_cast<float>(kernel.maximum));
  map2<T>(kernel, call, launch, [low, high] SP_DEVICE(float y, float dy) -> float {
    return y > low && y < high ? dy : 0;
  });
}

/// to = from where x is positive, times the channel's slope elsewhere: forward `from` is x itself, backward dy.
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

}  // namespace stratplan::own
