#pragma once
// Softmax over the channels.
#include <cmath>

#include "runtime/cuda/kernels/support/rows.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// The largest of some elements x, and the sum of exp(x - largest) over them.
struct ExponentialSum {
  double largest, sum;

  template <class T>
  SP_DEVICE static ExponentialSum of(const T* x, std::int64_t first, std::int64_t last,
                                     std::int64_t step) {
    double largest = x[first], sum = 0;
    for (std::int64_t i = first; i < last; i += step) largest = x[i] > largest ? x[i] : largest;
    for (std::int64_t i = first; i < last; i += step) sum += std::exp(x[i] - largest);
    return {largest, sum};
  }
  SP_DEVICE static ExponentialSum merged(const ExponentialSum& a, const ExponentialSum& b) {
    const double largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * std::exp(a.largest - largest) + b.sum * std::exp(b.largest - largest)};
  }
  /// Returns the softmax of an element of the row. The result is computed in float, because no more
  /// digits are stored.
  SP_DEVICE float share(float x) const {
    return std::exp(x - static_cast<float>(largest)) / static_cast<float>(sum);
  }
};

template <class T>
struct SoftmaxRow {
  using Summary = ExponentialSum;
  const T* x;
  T* y;
  SP_DEVICE Summary summary(std::int64_t first, std::int64_t last, std::int64_t step) const {
    return Summary::of(x, first, last, step);
  }
  SP_DEVICE static Summary merged(const Summary& a, const Summary& b) {
    return Summary::merged(a, b);
  }
  SP_DEVICE void write(std::int64_t i, const Summary& summary) const {
    y[i] = T(summary.share(x[i]));
  }
};
template <class T, class Launch>
void softmax_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_rows(kernel, call, launch, SoftmaxRow<T>{call.read<T>(0), call.write<T>(0)});
}

/// dx = y * (dy - sum of y * dy)
template <class T>
struct SoftmaxGradientRow {
  using Summary = double;
  const T *y, *dy;
  T* dx;
  SP_DEVICE Summary summary(std::int64_t first, std::int64_t last, std::int64_t step) const {
    double sum = 0;
    for (std::int64_t i = first; i < last; i += step) sum += double{y[i]} * double{dy[i]};
    return sum;
  }
  SP_DEVICE static Summary merged(double a, double b) { return a + b; }
  SP_DEVICE void write(std::int64_t i, double sum) const {
    dx[i] = T(static_cast<float>(y[i] * (dy[i] - sum)));
  }
};
template <class T, class Launch>
void softmax_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_rows(kernel, call, launch,
           SoftmaxGradientRow<T>{call.read<T>(0), call.read<T>(1), call.write<T>(0)});
}

}  // namespace stratplan::cuda_kernels
