// Normalization over the channels of each position.
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Returns element i of x, normalized with the statistics of its row.
double normalized(const KernelCall& call, std::int64_t row, std::int64_t i) {
  const double* statistics = call.read<double>(2) + 2 * row;
  return (call.read(0)[i] - statistics[0]) * statistics[1];
}

}  // namespace

void layer_norm_forward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const double terms = static_cast<double>(channels);
  for_each_row(kernel, [&](std::int64_t first) {
    const std::int64_t row = first / channels;
    const float* x = call.read(0) + first;
    double sum = 0, squares = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += x[c];
    const double mean = sum / terms;
    for (std::int64_t c = 0; c < channels; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const double factor = 1 / std::sqrt(squares / terms + kernel.as<LayerNormAttributes>().epsilon);
    for (std::int64_t c = 0; c < channels; ++c)
      call.write(0)[first + c] =
          static_cast<float>((x[c] - mean) * factor * call.read(1)[c] + call.read(2)[c]);
    call.write<double>(1)[2 * row] = mean;
    call.write<double>(1)[2 * row + 1] = factor;
  });
}

/// With g = dy * scale and z = normalized x: dx = (g - mean of g - z * mean of g z) * factor.
void layer_norm_backward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const double terms = static_cast<double>(channels);
  for_each_row(kernel, [&](std::int64_t first) {
    const std::int64_t row = first / channels;
    const auto g = [&](std::int64_t c) {
      return double{call.read(1)[first + c]} * call.read(3)[c];
    };
    double sum = 0, product = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum += g(c);
      product += g(c) * normalized(call, row, first + c);
    }
    for (std::int64_t c = 0; c < channels; ++c)
      call.write(0)[first + c] = static_cast<float>(
          (g(c) - sum / terms - normalized(call, row, first + c) * product / terms) *
          call.read<double>(2)[2 * row + 1]);
  });
}

void layer_norm_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const std::span<double> sums = sums_of(call, 2 * channels);
  for_each_row(kernel, [&](std::int64_t first) {
    const std::int64_t row = first / channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double dy = call.read(1)[first + c];
      sums[static_cast<std::size_t>(c)] += dy * normalized(call, row, first + c);
      sums[static_cast<std::size_t>(channels + c)] += dy;
    }
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    call.write(0)[c] = static_cast<float>(sums[static_cast<std::size_t>(c)]);
    call.write(1)[c] = static_cast<float>(sums[static_cast<std::size_t>(channels + c)]);
  }
}

}  // namespace stratplan::reference
