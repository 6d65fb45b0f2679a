// PReLU, and two activations that combine several channels: softmax and local response
// normalization.
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Returns the scale k + alpha / size * (sum of squares around channel c).
double response_scale(const Kernel& kernel, const float* x, std::int64_t c) {
  const LocalResponse& response = kernel.as<LocalResponse>();
  double squares = 0;
  for (std::int64_t j = std::max<std::int64_t>(0, c - response.size / 2);
       j <= std::min(kernel.x[Axis::C] - 1, c + response.size / 2); ++j)
    squares += double{x[j]} * x[j];
  return response.k + response.alpha / static_cast<double>(response.size) * squares;
}

}  // namespace

void prelu_forward(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *slope = call.read(1);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    call.write(0)[o] = x[o] > 0 ? x[o] : static_cast<float>(double{slope[i[1]]} * x[o]);
  });
}

void prelu_backward(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *dy = call.read(1), *slope = call.read(2);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    call.write(0)[o] = x[o] > 0 ? dy[o] : static_cast<float>(double{slope[i[1]]} * dy[o]);
  });
}

void prelu_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::span<double> sums = sums_of(call, kernel.x[Axis::C]);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    const float x = call.read(0)[o];
    if (!(x > 0)) sums[static_cast<std::size_t>(i[1])] += double{x} * call.read(1)[o];
  });
  for (std::size_t c = 0; c < sums.size(); ++c) call.write(0)[c] = static_cast<float>(sums[c]);
}

void softmax_forward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  for_each_row(kernel, [&](std::int64_t row) {
    const float* x = call.read(0) + row;
    const double largest = *std::max_element(x, x + channels);
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += std::exp(x[c] - largest);
    for (std::int64_t c = 0; c < channels; ++c)
      call.write(0)[row + c] = static_cast<float>(std::exp(x[c] - largest) / sum);
  });
}

void softmax_backward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  for_each_row(kernel, [&](std::int64_t row) {
    const float *y = call.read(0) + row, *dy = call.read(1) + row;
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) sum += double{y[c]} * dy[c];
    for (std::int64_t c = 0; c < channels; ++c)
      call.write(0)[row + c] = static_cast<float>(y[c] * (dy[c] - sum));
  });
}

void local_response_forward(const Kernel& kernel, const KernelCall& call) {
  for_each_row(kernel, [&](std::int64_t row) {
    const float* x = call.read(0) + row;
    for (std::int64_t c = 0; c < kernel.x[Axis::C]; ++c)
      call.write(0)[row + c] = static_cast<float>(
          x[c] * std::pow(response_scale(kernel, x, c), -kernel.as<LocalResponse>().beta));
  });
}

/// Let s be the scale of a channel. Then dx[c] = dy[c] s[c]^-beta - 2 alpha beta / size * x[c] *
/// sum of dy[j] x[j] s[j]^(-beta - 1) over the channels around c.
void local_response_backward(const Kernel& kernel, const KernelCall& call) {
  const LocalResponse& response = kernel.as<LocalResponse>();
  const double factor = 2 * response.alpha * response.beta / static_cast<double>(response.size);
  for_each_row(kernel, [&](std::int64_t row) {
    const float *x = call.read(0) + row, *dy = call.read(1) + row;
    const std::int64_t channels = kernel.x[Axis::C];
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::int64_t j = std::max<std::int64_t>(0, c - response.size / 2);
           j <= std::min(channels - 1, c + response.size / 2); ++j)
        sum += double{dy[j]} * x[j] * std::pow(response_scale(kernel, x, j), -response.beta - 1);
      call.write(0)[row + c] = static_cast<float>(
          dy[c] * std::pow(response_scale(kernel, x, c), -response.beta) - factor * x[c] * sum);
    }
  });
}

}  // namespace stratplan::reference
