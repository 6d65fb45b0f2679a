#pragma once
// Batch normalization; the formulas are in reference/batch_norm.cpp. Sums, means and variances are
// in double. Each kernel computes the coefficients per channel from the sums. The passes over the
// data are in float: y = (x - mean) * factor + shift. The mean is subtracted first, so that a large
// mean costs no digits. If channels share mean and variance, a separate launch adds up their sums
// first.
#include <cmath>

#include "runtime/cuda/kernels/activation.hpp"
#include "runtime/cuda/kernels/loss_scale.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// Mean and deviation of a channel in a statistics set. If channels share statistics, an entry of
/// `sums` is the sum over the channel's whole group.
struct Moments {
  const double* sums;  ///< [sets][2][channels]
  StatisticsSets sets;
  std::int64_t channels;
  double epsilon;

  SP_DEVICE double share(std::int64_t set) const { return 1 / sets.terms(set); }
  SP_DEVICE double mean(std::int64_t set, std::int64_t channel, double share) const {
    return sums[set * 2 * channels + channel] * share;
  }
  SP_DEVICE double variance(std::int64_t set, std::int64_t channel, double share) const {
    const double u = mean(set, channel, share),
                 v = sums[(set * 2 + 1) * channels + channel] * share - u * u;
    return v > 0 ? v : 0;
  }
  SP_DEVICE float reciprocal_deviation(std::int64_t set, std::int64_t channel, double share) const {
    return 1 / std::sqrt(static_cast<float>(variance(set, channel, share) + epsilon));
  }
};

/// For each channel, adds up the sums of all channels of its group, each multiplied by its own
/// factor.
struct GroupSums {
  const double* sums;
  const float* factors;  ///< if null, all factors are 1
  double* out;
  std::int64_t group;
  Divisor channels;

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t to = index, channel = channels.split(index), first = channel / group * group;
    double sum = 0;
    for (std::int64_t c = first; c < first + group; ++c)
      sum += sums[index * channels.value() + c] * (factors == nullptr ? 1.0F : factors[c]);
    out[to] = sum;
  }
};

inline bool shares_moments(const Kernel& kernel) { return kernel.sets().group_channels > 1; }
inline std::int64_t sums_elements(const Kernel& kernel) {
  return kernel.sets().sets * 2 * kernel.x[Axis::C];
}
/// Returns the size of the workspace of one call of group_sums().
inline Bytes group_sums_bytes(const Kernel& kernel) {
  return {shares_moments(kernel) ? sums_elements(kernel) * size_of(DataType::F64) : 0};
}
/// Returns, for each channel, the sum over its group of channels, weighted by `factors`. The sums
/// are written to `room`. If each channel has its own statistics, returns `sums`, unweighted.
template <class Launch>
const double* group_sums(const Kernel& kernel, const double* sums, const float* factors, void* room,
                         const Launch& launch) {
  if (!shares_moments(kernel)) return sums;
  double* out = static_cast<double*>(room);
  launch(sums_elements(kernel),
         GroupSums{sums, factors, out, kernel.sets().group_channels, Divisor(kernel.x[Axis::C])});
  return out;
}
template <class Launch>
Moments moments_of(const Kernel& kernel, const double* sums, void* room, const Launch& launch) {
  return {group_sums(kernel, sums, nullptr, room, launch), kernel.sets(), kernel.x[Axis::C],
          kernel.as<NormalizationAttributes>().epsilon};
}

// ---------------------------------------------------------------- statistics

template <class T>
struct StatisticsTerm {
  const T* x;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[2][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto pack = load<width>(x + i);
      for (int k = 0; k < width; ++k) {
        const double value = pack[k];
        sum[0][k] += value;
        sum[1][k] += value * value;
      }
    }
  }
};
struct StatisticsFinish {
  double* sums;
  std::int64_t channels;
  SP_DEVICE void operator()(std::int64_t set, std::int64_t channel, const double (&sum)[2]) const {
    for (int s = 0; s < 2; ++s) sums[(set * 2 + s) * channels + channel] = sum[s];
  }
};
template <class T, class Launch>
void batch_norm_statistics(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t channels = kernel.x[Axis::C];
  sum_strips<2>(launch, sets_of(kernel), channels, {call.read<T>(0)}, call.workspace,
                StatisticsTerm<T>{call.read<T>(0)},
                StatisticsFinish{call.write<double>(0), channels});
}

/// Computes this rank's share of the moments. Each set is weighted by the fraction of the set's
/// terms that this rank holds.
struct MomentsWork {
  const double* sums;
  double* moments;
  StatisticsSets sets;
  RowSets rows;
  std::int64_t channels;
  double weight;

  SP_DEVICE void operator()(std::int64_t channel) const {
    double mean = 0, variance = 0;
    for (std::int64_t set = 0; set < sets.sets; ++set) {
      const double terms = sets.terms(set),
                   share = static_cast<double>(rows.rows(set)) / terms * weight;
      const double u = sums[set * 2 * channels + channel] / terms,
                   square = sums[(set * 2 + 1) * channels + channel] / terms;
      const double biased = square - u * u > 0 ? square - u * u : 0;
      mean += share * u;
      variance += share * (terms > 1 ? biased * terms / (terms - 1) : biased);
    }
    moments[channel] = mean;
    moments[channels + channel] = variance;
  }
};
template <class Launch>
void batch_norm_moments(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t channels = kernel.x[Axis::C];
  launch(channels, MomentsWork{call.read<double>(0), call.write<double>(0), kernel.sets(),
                               sets_of(kernel), channels, kernel.as<MomentsAttributes>().weight});
}

template <class Launch>
void batch_norm_running_sums(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t channels = kernel.x[Axis::C];
  const double terms = kernel.sets().terms(0);
  const float* running = call.read(0);
  double* sums = call.write<double>(0);
  launch(channels, [channels, terms, running, sums] SP_DEVICE(std::int64_t c) {
    const double u = running[c];
    sums[c] = terms * u;
    sums[channels + c] = terms * (running[channels + c] + u * u);
  });
}

template <class Launch>
void running_average(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const double *moments = call.read<double>(0),
               weight = kernel.as<RunningAverageAttributes>().momentum;
  const float* running = call.read(1);
  float* out = call.write(0);
  unless_overflown(kernel, call, launch)(
      2 * kernel.x[Axis::C], [moments, weight, running, out] SP_DEVICE(std::int64_t i) {
        out[i] = static_cast<float>(running[i] + weight * (moments[i] - running[i]));
      });
}

// ---------------------------------------------------------------- forward

/// y = activation((x - mean) * factor + shift + addend)
template <class T>
struct Normalization {
  const T *x, *addend;  ///< `addend` may be null
  const float *scale, *shift;
  T* y;
  FusedActivation activation;

  Normalization(const Kernel& kernel, const KernelCall& call)
      : x(call.read<T>(0)),
        addend(kernel.epilogue().addend ? call.read<T>(4) : nullptr),
        scale(call.read(2)),
        shift(call.read(3)),
        y(call.write<T>(0)),
        activation(kernel) {}

  template <int width>
  SP_DEVICE void apply(const Strip& strip, const float (&mean)[width],
                       const float (&deviation)[width]) const {
    float factor[width], offset[width];
    for (int k = 0; k < width; ++k) {
      factor[k] = scale[strip.channel + k] * deviation[k];
      offset[k] = shift[strip.channel + k];
    }
    Pack<float, width> value[2], added[2]{};
    const auto fetch = [&](int slot, std::int64_t i) {
      value[slot] = load<width>(x + i);
      if (addend != nullptr) added[slot] = load<width>(addend + i);
    };
    in_batches<2>(strip, fetch, [&](int slot, std::int64_t i) {
      for (int k = 0; k < width; ++k)
        value[slot][k] =
            activation.result((value[slot][k] - mean[k]) * factor[k] + offset[k] + added[slot][k]);
      store(y + i, value[slot]);
    });
  }
};

template <class T>
struct NormalizeBySums {
  Normalization<T> normalization;
  Moments moments;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    const double share = moments.share(strip.set);
    float mean[width], deviation[width];
    for (int k = 0; k < width; ++k) {
      mean[k] = static_cast<float>(moments.mean(strip.set, strip.channel + k, share));
      deviation[k] = moments.reciprocal_deviation(strip.set, strip.channel + k, share);
    }
    normalization.template apply<width>(strip, mean, deviation);
  }
};
template <class T, class Launch>
void batch_norm_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const Normalization<T> normalization(kernel, call);
  const Moments moments = moments_of(kernel, call.read<double>(1), call.workspace, launch);
  for_strips(launch, sets_of(kernel), kernel.x[Axis::C],
             {normalization.x, normalization.addend, normalization.y},
             NormalizeBySums<T>{normalization, moments});
}

template <class T>
struct NormalizeByRunning {
  Normalization<T> normalization;
  const float *running_mean, *running_variance;
  double epsilon;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    float mean[width], deviation[width];
    for (int k = 0; k < width; ++k) {
      mean[k] = running_mean[strip.channel + k];
      deviation[k] =
          1 / std::sqrt(static_cast<float>(running_variance[strip.channel + k] + epsilon));
    }
    normalization.template apply<width>(strip, mean, deviation);
  }
};
template <class T, class Launch>
void batch_norm_inference(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const Normalization<T> normalization(kernel, call);
  const float* running = call.read(1);
  for_strips(launch, one_set(kernel.x), kernel.x[Axis::C],
             {normalization.x, normalization.addend, normalization.y},
             NormalizeByRunning<T>{normalization, running, running + kernel.x[Axis::C],
                                   kernel.as<NormalizationAttributes>().epsilon});
}

// ---------------------------------------------------------------- backward

/// The gradient dy, or the gradient of the activation's input if there is an activation.
template <class T>
struct GradientSource {
  const T *dy, *y;  ///< y: the activation's output; null without an activation
  FusedActivation activation;

  template <int width>
  SP_DEVICE Pack<float, width> at(std::int64_t i) const {
    auto gradient = load<width>(dy + i);
    if (y == nullptr) return gradient;
    const auto result = load<width>(y + i);
    for (int k = 0; k < width; ++k) gradient[k] = activation.passed(result[k], gradient[k]);
    return gradient;
  }
};

/// The terms of two sums, over dy and over dy * x. Products of floats are exact in double, so the
/// mean is subtracted from the second sum at the end (GradientFinish).
template <class T>
struct GradientTerm {
  const T* x;
  GradientSource<T> source;
  T* passed;  ///< where to store the source's gradient; null without an addend

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[2][width]) const {
    Pack<float, width> value[4], gradient[4];
    const auto fetch = [&](int slot, std::int64_t i) {
      value[slot] = load<width>(x + i);
      gradient[slot] = source.template at<width>(i);
    };
    in_batches<4>(strip, fetch, [&](int slot, std::int64_t i) {
      if (passed != nullptr) store(passed + i, gradient[slot]);
      for (int k = 0; k < width; ++k) {
        sum[0][k] += gradient[slot][k];
        sum[1][k] += double{gradient[slot][k]} * value[slot][k];
      }
    });
  }
};
struct GradientFinish {
  Moments moments;
  double* sums;
  float *dscale, *dshift;  ///< written here if there is one set, else by add_up_sets()

  SP_DEVICE void operator()(std::int64_t set, std::int64_t channel, const double (&sum)[2]) const {
    const double share = moments.share(set);
    const double deviation = 1 / std::sqrt(moments.variance(set, channel, share) + moments.epsilon);
    const double product = deviation * (sum[1] - moments.mean(set, channel, share) * sum[0]);
    sums[set * 2 * moments.channels + channel] = sum[0];
    sums[(set * 2 + 1) * moments.channels + channel] = product;
    if (moments.sets.sets > 1) return;
    dshift[channel] = static_cast<float>(sum[0]);
    dscale[channel] = static_cast<float>(product);
  }
};
/// Writes dshift and dscale, the sums over all sets.
template <class Launch>
void add_up_sets(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const double* sums = call.write<double>(0);
  float *dscale = call.write(1), *dshift = call.write(2);
  const std::int64_t channels = kernel.x[Axis::C], sets = kernel.sets().sets;
  launch(channels, [sums, dscale, dshift, channels, sets] SP_DEVICE(std::int64_t channel) {
    double shift = 0, scale = 0;
    SP_UNROLL
    for (std::int64_t set = 0; set < sets; ++set) {
      shift += sums[set * 2 * channels + channel];
      scale += sums[(set * 2 + 1) * channels + channel];
    }
    dshift[channel] = static_cast<float>(shift);
    dscale[channel] = static_cast<float>(scale);
  });
}

template <class T>
GradientSource<T> gradient_source(const Kernel& kernel, const KernelCall& call, std::size_t y) {
  return {call.read<T>(1), kernel.epilogue().activation ? call.read<T>(y) : nullptr,
          FusedActivation(kernel)};
}
inline Bytes backward_sums_workspace(const Kernel& kernel) {
  return SumPlan(sets_of(kernel), kernel.x[Axis::C], 2).workspace() + group_sums_bytes(kernel);
}
template <class T, class Launch>
void batch_norm_backward_sums(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T* x = call.read<T>(0);
  const GradientSource source = gradient_source<T>(kernel, call, 3);
  T* passed = kernel.epilogue().addend ? call.write<T>(3) : nullptr;
  void* partial_sums = static_cast<char*>(call.workspace) + group_sums_bytes(kernel).value;
  const Moments moments = moments_of(kernel, call.read<double>(2), call.workspace, launch);
  sum_strips<2>(launch, sets_of(kernel), kernel.x[Axis::C], {x, source.dy, source.y, passed},
                partial_sums, GradientTerm<T>{x, source, passed},
                GradientFinish{moments, call.write<double>(0), call.write(1), call.write(2)});
  if (kernel.sets().sets > 1) add_up_sets(kernel, call, launch);
}

/// dx = factor * dy - offset - (x - mean) * slope
template <class T>
struct GradientWork {
  const T* x;
  const float* scale;
  GradientSource<T> source;
  T* dx;
  Moments moments;
  const double* gradient_sums;  ///< sums of the group, scale included, or of the channel alone
  bool shared;                  ///< whether gradient_sums are sums of the group

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    const double share = moments.share(strip.set);
    float mean[width], factor[width], offset[width], slope[width];
    for (int k = 0; k < width; ++k) {
      const std::int64_t channel = strip.channel + k,
                         place = strip.set * 2 * moments.channels + channel;
      const float deviation = moments.reciprocal_deviation(strip.set, channel, share);
      const double weight = shared ? share : share * scale[channel];
      mean[k] = static_cast<float>(moments.mean(strip.set, channel, share));
      factor[k] = deviation * scale[channel];
      offset[k] = deviation * static_cast<float>(gradient_sums[place] * weight);
      slope[k] = deviation * deviation *
                 static_cast<float>(gradient_sums[place + moments.channels] * weight);
    }
    Pack<float, width> value[2], gradient[2];
    const auto fetch = [&](int slot, std::int64_t i) {
      value[slot] = load<width>(x + i);
      gradient[slot] = source.template at<width>(i);
    };
    in_batches<2>(strip, fetch, [&](int slot, std::int64_t i) {
      for (int k = 0; k < width; ++k)
        gradient[slot][k] =
            factor[k] * gradient[slot][k] - offset[k] - (value[slot][k] - mean[k]) * slope[k];
      store(dx + i, gradient[slot]);
    });
  }
};
template <class T, class Launch>
void batch_norm_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T* x = call.read<T>(0);
  T* dx = call.write<T>(0);
  const float* scale = call.read(4);
  const GradientSource source = gradient_source<T>(kernel, call, 5);
  void* second_room = static_cast<char*>(call.workspace) + group_sums_bytes(kernel).value;
  const Moments moments = moments_of(kernel, call.read<double>(2), call.workspace, launch);
  const double* gradient_sums =
      group_sums(kernel, call.read<double>(3), scale, second_room, launch);
  for_strips(launch, sets_of(kernel), kernel.x[Axis::C], {x, source.dy, source.y, dx},
             GradientWork<T>{x, scale, source, dx, moments, gradient_sums, shares_moments(kernel)});
}

}  // namespace stratplan::cuda_kernels
