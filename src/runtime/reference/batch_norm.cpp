// Normalization over sets of samples, and over groups of channels where channels share statistics.
// A group of channels in a set has m terms, mean u and biased variance v.
//   r = 1 / sqrt(v + epsilon)
//   h = (x - u) * r
//   y = scale * h + shift
//   y = activation(scale * h + shift + addend)
//       if an addition and an activation are fused; dy below is then the gradient of the
//       activation's input
//   dx = r * (scale * dy - sum(scale * dy) / m - h * sum(scale * dy * h) / m)
//       including the gradient through u and v
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// The sums of x and x^2 of each channel of each set, and the moments that follow from them.
struct Moments {
  const Kernel& kernel;
  const double* sums;
  const StatisticsSets& sets = kernel.sets();

  std::int64_t place(const Index& i, int which) const {
    return (sets.set_of(i[0]) * 2 + which) * kernel.x[Axis::C] + i[1];
  }
  double terms(const Index& i) const { return sets.terms(sets.set_of(i[0])); }
  /// Returns the mean over the set and channel group of i, from sums per channel. Unless null,
  /// `factors` holds one factor per channel, by which the channel's sum is multiplied.
  double mean_of(const double* values, const Index& i, int which,
                 const float* factors = nullptr) const {
    const std::int64_t group = sets.group_channels, first = i[1] / group * group;
    double sum = 0;
    for (std::int64_t c = first; c < first + group; ++c)
      sum += values[place({i[0], c}, which)] * (factors ? factors[c] : 1.0F);
    return sum / terms(i);
  }
  double mean(const Index& i) const { return mean_of(sums, i, 0); }
  double reciprocal_deviation(const Index& i) const {
    const double variance = std::max(0.0, mean_of(sums, i, 1) - mean(i) * mean(i));
    return 1 / std::sqrt(variance + kernel.as<NormalizationAttributes>().epsilon);
  }
  double normalized(const Index& i, float x) const {
    return (x - mean(i)) * reciprocal_deviation(i);
  }
};

float finished(const Kernel& kernel, const KernelCall& call, std::int64_t i, double normalized) {
  const float y = static_cast<float>(normalized);
  return activated(kernel,
                   kernel.epilogue().addend ? static_cast<float>(double{y} + call.read(4)[i]) : y);
}

/// Returns this rank's share of a set: the number of the set's samples on this rank times the
/// number of positions, divided by the number of terms of the set.
double share_of(const Kernel& kernel, std::int64_t set) {
  std::int64_t samples = 0;
  for (std::int64_t n = 0; n < kernel.x[Axis::N]; ++n) samples += kernel.sets().set_of(n) == set;
  return static_cast<double>(samples * kernel.x[Axis::D] * kernel.x[Axis::H] * kernel.x[Axis::W]) /
         kernel.sets().terms(set);
}

}  // namespace

void batch_norm_statistics(const Kernel& kernel, const KernelCall& call) {
  double* sums = call.write<double>(0);
  std::fill_n(sums, kernel.sets().sets * 2 * kernel.x[Axis::C], 0.0);
  const Moments at{kernel, sums};
  for_each_index(kernel.x, [&](const Index& i) {
    const double x = call.read(0)[offset(kernel.x, i)];
    sums[at.place(i, 0)] += x;
    sums[at.place(i, 1)] += x * x;
  });
}

void batch_norm_forward(const Kernel& kernel, const KernelCall& call) {
  const Moments moments{kernel, call.read<double>(1)};
  const float *x = call.read(0), *scale = call.read(2), *shift = call.read(3);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    call.write(0)[o] =
        finished(kernel, call, o, scale[i[1]] * moments.normalized(i, x[o]) + shift[i[1]]);
  });
}

void batch_norm_backward_sums(const Kernel& kernel, const KernelCall& call) {
  const Moments moments{kernel, call.read<double>(2)};
  const float *x = call.read(0), *dy = call.read(1),
              *y = kernel.epilogue().activation ? call.read(3) : nullptr;
  const std::int64_t channels = kernel.x[Axis::C];
  double* sums = call.write<double>(0);
  std::fill_n(sums, kernel.sets().sets * 2 * channels, 0.0);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    const float gradient = through_activation(kernel, y, o, dy[o]);
    sums[moments.place(i, 0)] += gradient;
    sums[moments.place(i, 1)] += gradient * moments.normalized(i, x[o]);
    if (kernel.epilogue().addend) call.write(3)[o] = gradient;
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    double dscale = 0, dshift = 0;
    for (std::int64_t set = 0; set < kernel.sets().sets; ++set) {
      dshift += sums[set * 2 * channels + c];
      dscale += sums[(set * 2 + 1) * channels + c];
    }
    call.write(1)[c] = static_cast<float>(dscale);
    call.write(2)[c] = static_cast<float>(dshift);
  }
}

void batch_norm_backward(const Kernel& kernel, const KernelCall& call) {
  const Moments moments{kernel, call.read<double>(2)};
  const float *x = call.read(0), *dy = call.read(1), *scale = call.read(4),
              *y = kernel.epilogue().activation ? call.read(5) : nullptr;
  const double* gradient_sums = call.read<double>(3);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i);
    const double mean_dy = moments.mean_of(gradient_sums, i, 0, scale),
                 mean_dy_h = moments.mean_of(gradient_sums, i, 1, scale);
    const double centered = double{scale[i[1]]} * through_activation(kernel, y, o, dy[o]) -
                            mean_dy - moments.normalized(i, x[o]) * mean_dy_h;
    call.write(0)[o] = static_cast<float>(moments.reciprocal_deviation(i) * centered);
  });
}

void batch_norm_moments(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  double *mean = call.write<double>(0), *variance = mean + channels;
  std::fill_n(mean, 2 * channels, 0.0);
  for (std::int64_t set = 0; set < kernel.sets().sets; ++set) {
    const double *sums = call.read<double>(0) + set * 2 * channels, *squares = sums + channels;
    const double terms = kernel.sets().terms(set),
                 share = share_of(kernel, set) * kernel.as<MomentsAttributes>().weight;
    for (std::int64_t c = 0; c < channels; ++c) {
      mean[c] += share * sums[c] / terms;
      const double biased = std::max(0.0, squares[c] / terms - sums[c] / terms * (sums[c] / terms));
      variance[c] += share * (terms > 1 ? biased * terms / (terms - 1) : biased);
    }
  }
}

void batch_norm_running_sums(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const double terms = kernel.sets().terms(0);
  const float *mean = call.read(0), *variance = mean + channels;
  double *sums = call.write<double>(0), *squares = sums + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double u = mean[c];
    sums[c] = terms * u;
    squares[c] = terms * (variance[c] + u * u);
  }
}

void running_average(const Kernel& kernel, const KernelCall& call) {
  const double* moments = call.read<double>(0);
  const float* running = call.read(1);
  const double momentum = kernel.as<RunningAverageAttributes>().momentum;
  for (std::int64_t i = 0; i < 2 * kernel.x[Axis::C]; ++i)
    call.write(0)[i] = static_cast<float>(running[i] + momentum * (moments[i] - running[i]));
}

void batch_norm_inference(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *mean = call.read(1), *variance = mean + kernel.x[Axis::C],
              *scale = call.read(2), *shift = call.read(3);
  for_each_index(kernel.x, [&](const Index& i) {
    const std::int64_t o = offset(kernel.x, i), c = i[1];
    call.write(0)[o] = finished(
        kernel, call, o,
        scale[c] * (double{x[o]} - mean[c]) /
                std::sqrt(double{variance[c]} + kernel.as<NormalizationAttributes>().epsilon) +
            shift[c]);
  });
}

}  // namespace stratplan::reference
