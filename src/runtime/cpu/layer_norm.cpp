// Normalization over the channels of each position. Sums are in double, in four lanes.
#include <cmath>

#include "runtime/cpu/column_sums.hpp"

namespace stratplan::cpu {
namespace {

SP_INLINE Double4 wide(Float4 values) { return __builtin_convertvector(values, Double4); }
SP_INLINE double sum_of(Double4 lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

/// statistics: mean and 1 / sqrt(variance + epsilon) of each row
SP_CLONES void normalize_rows(const float* x, const float* scale, const float* shift,
                              double epsilon, float* y, double* statistics, std::int64_t rows,
                              std::int64_t channels) {
  const double terms = static_cast<double>(channels);
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels, statistics += 2) {
    Double4 lanes{};
    std::int64_t c = 0;
    for (; c + 4 <= channels; c += 4) lanes += wide(load4(x + c));
    double sum = sum_of(lanes);
    for (; c < channels; ++c) sum += x[c];
    const double mean = sum / terms;
    lanes = Double4{};
    for (c = 0; c + 4 <= channels; c += 4) {
      const Double4 apart = wide(load4(x + c)) - mean;
      lanes += apart * apart;
    }
    double squares = sum_of(lanes);
    for (; c < channels; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const double factor = 1 / std::sqrt(squares / terms + epsilon);
#pragma GCC ivdep
    for (c = 0; c < channels; ++c)
      y[c] = static_cast<float>((x[c] - mean) * factor) * scale[c] + shift[c];
    statistics[0] = mean;
    statistics[1] = factor;
  }
}

/// The formula is in reference/layer_norm.cpp.
SP_CLONES void gradient_rows(const float* x, const float* dy, const double* statistics,
                             const float* scale, float* dx, std::int64_t rows,
                             std::int64_t channels) {
  const double terms = static_cast<double>(channels);
  for (std::int64_t row = 0; row < rows;
       ++row, x += channels, dy += channels, dx += channels, statistics += 2) {
    const double mean = statistics[0], factor = statistics[1];
    Double4 sums{}, products{};
    std::int64_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      const Double4 g = wide(load4(dy + c)) * wide(load4(scale + c));
      sums += g;
      products += g * (wide(load4(x + c)) - mean);
    }
    double sum = sum_of(sums), product = sum_of(products);
    for (; c < channels; ++c) {
      const double g = double{dy[c]} * scale[c];
      sum += g;
      product += g * (x[c] - mean);
    }
    const double mean_of_g = sum / terms, slope = product * factor * factor / terms;
#pragma GCC ivdep
    for (c = 0; c < channels; ++c)
      dx[c] = static_cast<float>((double{dy[c]} * scale[c] - mean_of_g - (x[c] - mean) * slope) *
                                 factor);
  }
}

/// Adds up dy * normalized x, and dy, of the channels [begin, end), in sums [2][channels].
SP_CLONES void sum_parameters(const float* x, const float* dy, const double* statistics,
                              double* sums, std::int64_t rows, std::int64_t channels,
                              std::int64_t begin, std::int64_t end) {
  double* const of_scale = sums;
  double* const of_shift = sums + channels;
  for (std::int64_t row = 0; row < rows; ++row, x += channels, dy += channels, statistics += 2) {
    const double mean = statistics[0], factor = statistics[1];
#pragma GCC ivdep
    for (std::int64_t c = begin; c < end; ++c) {
      of_scale[c] += dy[c] * ((x[c] - mean) * factor);
      of_shift[c] += dy[c];
    }
  }
}

}  // namespace

void layer_norm_forward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    normalize_rows(call.read(0) + i, call.read(1), call.read(2),
                   kernel.as<LayerNormAttributes>().epsilon, call.write(0) + i,
                   call.write<double>(1) + 2 * (i / channels), rows, channels);
  });
}

void layer_norm_backward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    gradient_rows(call.read(0) + i, call.read(1) + i, call.read<double>(2) + 2 * (i / channels),
                  call.read(3), call.write(0) + i, rows, channels);
  });
}

void layer_norm_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  double* sums = static_cast<double*>(call.workspace);
  std::fill_n(sums, 2 * channels, 0.0);
  in_parallel(channels, summed_columns, [&](auto begin, auto end) {
    sum_parameters(call.read(0), call.read(1), call.read<double>(2), sums,
                   kernel.x.elements() / channels, channels, begin, end);
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    call.write(0)[c] = static_cast<float>(sums[c]);
    call.write(1)[c] = static_cast<float>(sums[channels + c]);
  }
}

}  // namespace stratplan::cpu
