#pragma once
// Normalization over the channels of each position; the formulas are in reference/layer_norm.cpp.
#include <cmath>

#include "runtime/cuda/kernels/support/rows.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// The number of some elements of a row, their mean, and the sum of the squares of their distances
/// from it. Two of them are merged as in Chan et al., "Updating formulae and a pairwise algorithm
/// for computing sample variances", 1979.
struct RowMoments {
  double count, mean, squares;

  SP_DEVICE static RowMoments merged(const RowMoments& a, const RowMoments& b) {
    const double count = a.count + b.count;
    if (count == 0) return a;
    const double apart = b.mean - a.mean;
    return {count, a.mean + apart * b.count / count,
            a.squares + b.squares + apart * apart * a.count * b.count / count};
  }
};

template <class T>
struct LayerNormRow {
  using Summary = RowMoments;
  const T* x;
  const float *scale, *shift;
  double epsilon;
  T* y;
  double* statistics;
  Divisor channels;

  SP_DEVICE Summary summary(std::int64_t first, std::int64_t last, std::int64_t step) const {
    Summary found{0, 0, 0};
    double sum = 0;
    for (std::int64_t i = first; i < last; i += step) {
      sum += double{x[i]};
      ++found.count;
    }
    if (found.count == 0) return found;
    found.mean = sum / found.count;
    for (std::int64_t i = first; i < last; i += step) {
      const double apart = double{x[i]} - found.mean;
      found.squares += apart * apart;
    }
    return found;
  }
  SP_DEVICE static Summary merged(const Summary& a, const Summary& b) {
    return Summary::merged(a, b);
  }
  SP_DEVICE void write(std::int64_t i, const Summary& summary) const {
    const std::int64_t row = channels.quotient(i), c = i - row * channels.value();
    const double factor = 1 / std::sqrt(summary.squares / summary.count + epsilon);
    y[i] = T(static_cast<float>((double{x[i]} - summary.mean) * factor) * scale[c] + shift[c]);
    if (c > 0) return;
    statistics[2 * row] = summary.mean;
    statistics[2 * row + 1] = factor;
  }
};
template <class T, class Launch>
void layer_norm_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_rows(kernel, call, launch,
           LayerNormRow<T>{call.read<T>(0), call.read(1), call.read(2),
                           kernel.as<LayerNormAttributes>().epsilon, call.write<T>(0),
                           call.write<double>(1), Divisor(kernel.x[Axis::C])});
}

/// The sums over a row of g = dy * scale, and of g * (x - mean).
struct RowGradientSums {
  double sum, product;
};
template <class T>
struct LayerNormGradientRow {
  using Summary = RowGradientSums;
  const T *x, *dy;
  const double* statistics;
  const float* scale;
  T* dx;
  Divisor channels;

  SP_DEVICE Summary summary(std::int64_t first, std::int64_t last, std::int64_t step) const {
    const std::int64_t row = channels.quotient(first), begin = row * channels.value();
    Summary found{0, 0};
    for (std::int64_t i = first; i < last; i += step) {
      const double g = double{dy[i]} * scale[i - begin];
      found.sum += g;
      found.product += g * (double{x[i]} - statistics[2 * row]);
    }
    return found;
  }
  SP_DEVICE static Summary merged(const Summary& a, const Summary& b) {
    return {a.sum + b.sum, a.product + b.product};
  }
  SP_DEVICE void write(std::int64_t i, const Summary& summary) const {
    const std::int64_t row = channels.quotient(i), c = i - row * channels.value();
    const double mean = statistics[2 * row], factor = statistics[2 * row + 1],
                 terms = static_cast<double>(channels.value());
    const double through_variance =
        (double{x[i]} - mean) * factor * factor * summary.product / terms;
    dx[i] = T(static_cast<float>(
        (double{dy[i]} * scale[c] - summary.sum / terms - through_variance) * factor));
  }
};
template <class T, class Launch>
void layer_norm_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_rows(kernel, call, launch,
           LayerNormGradientRow<T>{call.read<T>(0), call.read<T>(1), call.read<double>(2),
                                   call.read(3), call.write<T>(0), Divisor(kernel.x[Axis::C])});
}

template <class T>
struct LayerNormParameterTerm {
  const T *x, *dy;
  const double* statistics;
  Divisor channels;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[2][width]) const {
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const std::int64_t row = channels.quotient(i);
      const double mean = statistics[2 * row], factor = statistics[2 * row + 1];
      const auto value = load<width>(x + i), gradient = load<width>(dy + i);
      for (int k = 0; k < width; ++k) {
        sum[0][k] += double{gradient[k]} * ((double{value[k]} - mean) * factor);
        sum[1][k] += double{gradient[k]};
      }
    }
  }
};
struct ScaleAndShift {
  float *scale, *shift;
  SP_DEVICE void operator()(std::int64_t, std::int64_t channel, const double (&sum)[2]) const {
    scale[channel] = static_cast<float>(sum[0]);
    shift[channel] = static_cast<float>(sum[1]);
  }
};
template <class T, class Launch>
void layer_norm_gradient(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T *x = call.read<T>(0), *dy = call.read<T>(1);
  const std::int64_t channels = kernel.x[Axis::C];
  sum_strips<2>(launch, one_set(kernel.x), channels, {x, dy}, call.workspace,
                LayerNormParameterTerm<T>{x, dy, call.read<double>(2), Divisor(channels)},
                ScaleAndShift{call.write(0), call.write(1)});
}

}  // namespace stratplan::cuda_kernels
