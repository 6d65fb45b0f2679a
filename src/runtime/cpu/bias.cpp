#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {
namespace {

SP_CLONES void add_to_rows(const float* y, const float* bias, float* sum, std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, sum += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) sum[c] = y[c] + bias[c];
  }
}

}  // namespace

void bias_add(const Kernel& kernel, const HostCall& call) {
  const std::int64_t channels = kernel.y[Axis::C];
  in_parallel(kernel.y.elements() / channels, 16, [&](auto begin, auto end) {
    add_to_rows(call.read(0) + begin * channels, call.read(1), call.write(0) + begin * channels, end - begin, channels);
  });
}

void bias_gradient(const Kernel& kernel, const HostCall& call) {
  const std::int64_t channels = kernel.y[Axis::C];
  double* sums = static_cast<double*>(call.workspace);
  std::fill_n(sums, channels, 0.0);
  add_column_sums(call.read(0), kernel.y.elements() / channels, channels, sums);
  for (std::int64_t c = 0; c < channels; ++c) call.write(0)[c] = static_cast<float>(sums[c]);
}

}  // namespace stratplan::cpu
