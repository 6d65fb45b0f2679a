// Activations with a parameter (PReLU) or over all channels (softmax). The output of an
// element-wise kernel may be one of its inputs.
#include "runtime/cpu/column_sums.hpp"
#include "runtime/cpu/vector_math.hpp"

namespace stratplan::cpu {
namespace {

/// Computes PReLU forward if v is x, and backward if v is dy. Where x is positive, y is v.
/// Elsewhere, y is slope * v.
SP_CLONES void prelu_rows(const float* x, const float* v, const float* slope, float* y,
                          std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, v += channels, y += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) y[c] = x[c] > 0 ? v[c] : slope[c] * v[c];
  }
}

/// The terms that add up to the gradient of the slope. A term is x * dy where x is not positive,
/// else 0.
struct SlopeTerm {
  static constexpr int count = 1;
  const float* x;
  const float* dy;
  double* sums;
  [[gnu::always_inline]] void add(std::int64_t i, std::int64_t, Double4& sum, Double4&) const {
    const Float4 value = load4(x + i), zero{};
    const Float4 negative = value > zero ? zero : value;
    sum += __builtin_convertvector(negative, Double4) *
           __builtin_convertvector(load4(dy + i), Double4);
  }
  [[gnu::always_inline]] void add_one(std::int64_t i, std::int64_t c, std::int64_t) const {
    sums[c] += x[i] > 0 ? 0 : double{x[i]} * dy[i];
  }
};

SP_CLONES void sum_slopes(SlopeTerm term, std::int64_t rows, std::int64_t channels,
                          std::int64_t begin, std::int64_t end) {
  sum_columns(term, rows, channels, begin, end);
}

SP_CLONES void softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    float largest = x[0];
    for (std::int64_t c = 1; c < channels; ++c) largest = x[c] > largest ? x[c] : largest;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) y[c] = exponential(x[c] - largest);
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += y[c];
    const float factor = static_cast<float>(1 / sum);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) y[c] *= factor;
  }
}

SP_CLONES void softmax_gradient_rows(const float* y, const float* dy, float* dx, std::int64_t rows,
                                     std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, dy += channels, dx += channels) {
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += double{y[c]} * dy[c];
    const float mean = static_cast<float>(sum);
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) dx[c] = y[c] * (dy[c] - mean);
  }
}

}  // namespace

void prelu_forward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    prelu_rows(call.read(0) + i, call.read(0) + i, call.read(1), call.write(0) + i, rows, channels);
  });
}
void prelu_backward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    prelu_rows(call.read(0) + i, call.read(1) + i, call.read(2), call.write(0) + i, rows, channels);
  });
}
void prelu_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  double* sums = static_cast<double*>(call.workspace);
  std::fill_n(sums, channels, 0.0);
  in_parallel(channels, summed_columns, [&](auto begin, auto end) {
    sum_slopes({call.read(0), call.read(1), sums}, kernel.x.elements() / channels, channels, begin,
               end);
  });
  for (std::int64_t c = 0; c < channels; ++c) call.write(0)[c] = static_cast<float>(sums[c]);
}

void softmax_forward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    softmax_rows(call.read(0) + i, call.write(0) + i, rows, channels);
  });
}
void softmax_backward(const Kernel& kernel, const KernelCall& call) {
  in_rows(kernel, [&](auto i, auto rows, auto channels) {
    softmax_gradient_rows(call.read(0) + i, call.read(1) + i, call.write(0) + i, rows, channels);
  });
}

}  // namespace stratplan::cpu
