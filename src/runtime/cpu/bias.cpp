// Kernels of biases, and of the activation after them. A ReLU is a leaky ReLU of slope 0.
#include "runtime/cpu/column_sums.hpp"

namespace stratplan::cpu {
namespace {

SP_CLONES void add_to_rows(const float* y, const float* bias, float* sum, std::int64_t rows,
                           std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, sum += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) sum[c] = y[c] + bias[c];
  }
}

SP_CLONES void add_and_activate_rows(const float* y, const float* bias, float slope, float* sum,
                                     std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, sum += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = y[c] + bias[c];
      sum[c] = leak(value, value, slope);
    }
  }
}

SP_CLONES void activate_run(float* y, float slope, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = leak(y[i], y[i], slope);
}

/// The terms that add up to the bias gradient. A term is the gradient of the activation's input,
/// and is also stored in dx.
struct ActivatedTerm {
  static constexpr int count = 1;
  const float *dy, *y;
  float slope;
  float* dx;
  double* sums;
  [[gnu::always_inline]] void add(std::int64_t i, std::int64_t, Double4& sum, Double4&) const {
    const Float4 before = leak(load4(y + i), load4(dy + i), slope);
    store(dx + i, before);
    sum += __builtin_convertvector(before, Double4);
  }
  [[gnu::always_inline]] void add_one(std::int64_t i, std::int64_t c, std::int64_t) const {
    dx[i] = leak(y[i], dy[i], slope);
    sums[c] += dx[i];
  }
};

SP_CLONES void sum_activated(ActivatedTerm term, std::int64_t rows, std::int64_t channels,
                             std::int64_t begin, std::int64_t end) {
  sum_columns(term, rows, channels, begin, end);
}

}  // namespace

void activate(const Kernel& kernel, float* y, std::int64_t count) {
  if (!kernel.epilogue().activation) return;
  in_parallel(count, element_grain, [&](auto begin, auto end) {
    activate_run(y + begin, static_cast<float>(kernel.epilogue().slope()), end - begin);
  });
}

void bias_add(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.y[Axis::C];
  const float slope = static_cast<float>(kernel.epilogue().slope());
  in_parallel(kernel.y.elements() / channels, 16, [&](auto begin, auto end) {
    const float* const y = call.read(0) + begin * channels;
    float* const sum = call.write(0) + begin * channels;
    if (!kernel.epilogue().activation)
      add_to_rows(y, call.read(1), sum, end - begin, channels);
    else
      add_and_activate_rows(y, call.read(1), slope, sum, end - begin, channels);
  });
}

void bias_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.y[Axis::C], rows = kernel.y.elements() / channels;
  double* sums = static_cast<double*>(call.workspace);
  std::fill_n(sums, channels, 0.0);
  if (!kernel.epilogue().activation) {
    add_column_sums(call.read(0), rows, channels, sums);
  } else {
    const ActivatedTerm term{call.read(0), call.read(1),
                             static_cast<float>(kernel.epilogue().slope()), call.write(1), sums};
    in_parallel(channels, summed_columns,
                [&](auto begin, auto end) { sum_activated(term, rows, channels, begin, end); });
  }
  for (std::int64_t c = 0; c < channels; ++c) call.write(0)[c] = static_cast<float>(sums[c]);
}

}  // namespace stratplan::cpu
