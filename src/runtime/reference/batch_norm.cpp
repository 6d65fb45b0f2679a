// Batch normalization over sets of samples. With m terms, mean u and biased variance v of a set's channel, r = 1 / sqrt(v + epsilon) and
// h = (x - u) * r:
//   y = scale * h + shift
//   dx = scale * r * (dy - sum(dy) / m - h * sum(dy * h) / m)          the gradient through u and v included
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// The two sums of each channel of each set, and what follows from them.
struct Moments {
  const Kernel& kernel;
  const double* sums;

  std::int64_t place(const Index& i, int which) const { return (kernel.sets.set_of(i[0]) * 2 + which) * kernel.x[Axis::C] + i[1]; }
  double terms(const Index& i) const { return kernel.sets.terms(kernel.sets.set_of(i[0])); }
  double mean(const Index& i) const { return sums[place(i, 0)] / terms(i); }
  double reciprocal_deviation(const Index& i) const {
    const double variance = std::max(0.0, sums[place(i, 1)] / terms(i) - mean(i) * mean(i));
    return 1 / std::sqrt(variance + kernel.scalar);
  }
  double normalized(const Index& i, float x) const { return (x - mean(i)) * reciprocal_deviation(i); }
};

}  // namespace

void batch_norm_statistics(const Kernel& kernel, const HostCall& call) {
  double* sums = call.write<double>(0);
  std::fill_n(sums, kernel.sets.sets * 2 * kernel.x[Axis::C], 0.0);
  const Moments at{kernel, sums};
  for_each_index(kernel.x, [&](const Index& i) {
    const double x = call.read(0)[offset(kernel.x, i)];
    sums[at.place(i, 0)] += x;
    sums[at.place(i, 1)] += x * x;
  });
}

void batch_norm_forward(const Kernel& kernel, const HostCall& call) {
  const Moments moments{kernel, call.read<double>(1)};
  const float *x = call.read(0), *scale = call.read(2), *shift = call.read(3);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    call.write(0)[o] = static_cast<float>(scale[i[1]] * moments.normalized(i, x[o]) + shift[i[1]]);
  });
}

void batch_norm_backward_sums(const Kernel& kernel, const HostCall& call) {
  const Moments moments{kernel, call.read<double>(2)};
  const float *x = call.read(0), *dy = call.read(1);
  const std::int64_t channels = kernel.x[Axis::C];
  double* sums = call.write<double>(0);
  std::fill_n(sums, kernel.sets.sets * 2 * channels, 0.0);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    sums[moments.place(i, 0)] += dy[o];
    sums[moments.place(i, 1)] += dy[o] * moments.normalized(i, x[o]);
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    double dscale = 0, dshift = 0;
    for (std::int64_t set = 0; set < kernel.sets.sets; ++set) {
      dshift += sums[set * 2 * channels + c];
      dscale += sums[(set * 2 + 1) * channels + c];
    }
    call.write(1)[c] = static_cast<float>(dscale);
    call.write(2)[c] = static_cast<float>(dshift);
  }
}

void batch_norm_backward(const Kernel& kernel, const HostCall& call) {
  const Moments moments{kernel, call.read<double>(2)};
  const float *x = call.read(0), *dy = call.read(1), *scale = call.read(4);
  const double* gradient_sums = call.read<double>(3);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    const double mean_dy = gradient_sums[moments.place(i, 0)] / moments.terms(i), mean_dy_h = gradient_sums[moments.place(i, 1)] / moments.terms(i);
    const double centered = dy[o] - mean_dy - moments.normalized(i, x[o]) * mean_dy_h;
    call.write(0)[o] = static_cast<float>(scale[i[1]] * moments.reciprocal_deviation(i) * centered);
  });
}

}  // namespace stratplan::reference
