// Batch normalization; the formulas are in reference/batch_norm.cpp. Coefficients per channel are
// computed in double, once per statistics set. The passes over the data are in float:
//   y = (x - mean) * factor + shift
// The mean is subtracted first, so that a large mean costs no digits.
#include <cmath>
#include <numeric>

#include "runtime/cpu/column_sums.hpp"

namespace stratplan::cpu {
namespace {

struct MomentTerm {
  static constexpr int count = 2;
  const float* x;
  double* sums;
  [[gnu::always_inline]] void add(std::int64_t i, std::int64_t, Double4& sum,
                                  Double4& square) const {
    const Double4 value = __builtin_convertvector(load4(x + i), Double4);
    sum += value;
    square += value * value;
  }
  [[gnu::always_inline]] void add_one(std::int64_t i, std::int64_t c, std::int64_t channels) const {
    const double value = x[i];
    sums[c] += value;
    sums[channels + c] += value * value;
  }
};

/// The tensors that the gradient of a normalization reads and writes.
struct GradientSources {
  const float *x, *dy;
  const float* y;  ///< output of the activation; null if there is none
  float slope;     ///< slope of the activation where y is not positive
  float* passed;   ///< where the gradient of the activation's input goes; null without an addend
};

/// The terms of two sums, over dy and over dy * (x - mean). If `activated`, dy is first replaced by
/// the gradient of the activation's input. If `passes`, that gradient is also stored.
template <bool activated, bool passes>
struct GradientTerm {
  static constexpr int count = 2;
  GradientSources from;
  const float* mean;
  double* sums;
  [[gnu::always_inline]] void add(std::int64_t i, std::int64_t c, Double4& sum,
                                  Double4& product) const {
    const Float4 centered = load4(from.x + i) - load4(mean + c);
    Float4 dy = load4(from.dy + i);
    if (activated) dy = leak(load4(from.y + i), dy, from.slope);
    if (passes) store(from.passed + i, dy);
    const Double4 gradient = __builtin_convertvector(dy, Double4);
    sum += gradient;
    product += gradient * __builtin_convertvector(centered, Double4);
  }
  [[gnu::always_inline]] void add_one(std::int64_t i, std::int64_t c, std::int64_t channels) const {
    const float centered = from.x[i] - mean[c];
    const float dy = activated ? leak(from.y[i], from.dy[i], from.slope) : from.dy[i];
    if (passes) from.passed[i] = dy;
    sums[c] += dy;
    sums[channels + c] += double{dy} * centered;
  }
};

struct SumTerm {
  static constexpr int count = 1;
  const float* x;
  double* sums;
  [[gnu::always_inline]] void add(std::int64_t i, std::int64_t, Double4& sum, Double4&) const {
    sum += __builtin_convertvector(load4(x + i), Double4);
  }
  [[gnu::always_inline]] void add_one(std::int64_t i, std::int64_t c, std::int64_t) const {
    sums[c] += x[i];
  }
};

SP_CLONES void sum_moments(MomentTerm term, std::int64_t rows, std::int64_t channels,
                           std::int64_t begin, std::int64_t end) {
  sum_columns(term, rows, channels, begin, end);
}
SP_CLONES void sum_gradients(GradientSources from, const float* mean, double* sums,
                             std::int64_t rows, std::int64_t channels, std::int64_t begin,
                             std::int64_t end) {
  if (from.passed)
    return sum_columns(GradientTerm<true, true>{from, mean, sums}, rows, channels, begin, end);
  if (from.y)
    return sum_columns(GradientTerm<true, false>{from, mean, sums}, rows, channels, begin, end);
  sum_columns(GradientTerm<false, false>{from, mean, sums}, rows, channels, begin, end);
}
SP_CLONES void sum_plain(SumTerm term, std::int64_t rows, std::int64_t channels, std::int64_t begin,
                         std::int64_t end) {
  sum_columns(term, rows, channels, begin, end);
}

/// Operands of y = activation((x - mean) * factor + shift + addend). A ReLU is a leaky ReLU of
/// slope 0.
struct Normalization {
  const float *x, *addend;  ///< the addend may be null
  float* y;
  const float *mean, *factor, *shift;
  bool activates;
  float slope;
};

template <bool adds, bool activates>
[[gnu::always_inline]] inline void normalize(Normalization k, std::int64_t rows,
                                             std::int64_t channels) {
  for (std::int64_t row = 0; row < rows; ++row, k.x += channels, k.y += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      float value = (k.x[c] - k.mean[c]) * k.factor[c] + k.shift[c];
      if (adds) value += k.addend[c];
      k.y[c] = activates ? leak(value, value, k.slope) : value;
    }
    if (adds) k.addend += channels;
  }
}

SP_CLONES void normalize_rows(Normalization k, std::int64_t rows, std::int64_t channels) {
  if (k.addend)
    return k.activates ? normalize<true, true>(k, rows, channels)
                       : normalize<true, false>(k, rows, channels);
  k.activates ? normalize<false, true>(k, rows, channels)
              : normalize<false, false>(k, rows, channels);
}

/// Returns the operands of the kernel from element `start` on, with the given coefficients.
Normalization normalization(const Kernel& kernel, const KernelCall& call, std::int64_t start,
                            const float* mean, const float* factor) {
  return {call.read(0) + start,
          kernel.epilogue().addend ? call.read(4) + start : nullptr,
          call.write(0) + start,
          mean,
          factor,
          call.read(3),
          kernel.epilogue().activation.has_value(),
          static_cast<float>(kernel.epilogue().slope())};
}

/// Returns the operands of the gradient from element `start` on. `y`: index of the activation's
/// output among the reads. `passed`: index of a write, used only if there is an addend.
GradientSources gradient_sources(const Kernel& kernel, const KernelCall& call, std::int64_t start,
                                 std::size_t y, std::size_t passed) {
  return {call.read(0) + start, call.read(1) + start,
          !kernel.epilogue().activation ? nullptr : call.read(y) + start,
          static_cast<float>(kernel.epilogue().slope()),
          kernel.epilogue().addend ? call.write(passed) + start : nullptr};
}

/// Coefficients of dx = factor * dy - offset - (x - mean) * slope.
struct GradientCoefficients {
  const float *mean, *factor, *offset, *slope;
};

template <bool activated>
[[gnu::always_inline]] inline void gradient(GradientSources from, float* dx, GradientCoefficients k,
                                            std::int64_t rows, std::int64_t channels) {
  for (std::int64_t row = 0; row < rows;
       ++row, from.x += channels, from.dy += channels, dx += channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const float dy = activated ? leak(from.y[c], from.dy[c], from.slope) : from.dy[c];
      dx[c] = k.factor[c] * dy - k.offset[c] - (from.x[c] - k.mean[c]) * k.slope[c];
    }
    if (activated) from.y += channels;
  }
}

SP_CLONES void gradient_rows(GradientSources from, float* dx, GradientCoefficients k,
                             std::int64_t rows, std::int64_t channels) {
  from.y ? gradient<true>(from, dx, k, rows, channels)
         : gradient<false>(from, dx, k, rows, channels);
}

/// Consecutive local samples of one statistics set, in rows [first_row, first_row + rows) of x.
struct Run {
  std::int64_t set = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

template <class Visit>
void for_each_run(const Kernel& kernel, Visit visit) {
  const std::int64_t samples = kernel.x[Axis::N], rows = positions(kernel.x);
  for (std::int64_t first = 0, last; first < samples; first = last) {
    const std::int64_t set = kernel.sets().set_of(first);
    for (last = first + 1; last < samples && kernel.sets().set_of(last) == set;) ++last;
    visit(Run{set, first * rows, (last - first) * rows});
  }
}

struct Moments {
  double mean;
  double reciprocal_deviation;
};

/// Returns the moments of the group of channels that begins at `first`. `sums`: the set's sums and
/// sums of squares per channel, in the shape [2][channels].
Moments moments(const Kernel& kernel, const double* sums, std::int64_t set, std::int64_t first) {
  const double terms = kernel.sets().terms(set);
  double sum = 0, squares = 0;
  for (std::int64_t c = first; c < first + kernel.sets().group_channels; ++c) {
    sum += sums[c];
    squares += sums[kernel.x[Axis::C] + c];
  }
  const double mean = sum / terms, variance = std::max(0.0, squares / terms - mean * mean);
  return {mean, 1 / std::sqrt(variance + kernel.as<NormalizationAttributes>().epsilon)};
}

/// Calls visit(c, moments) for every channel.
template <class Visit>
void for_each_channel(const Kernel& kernel, const double* sums, std::int64_t set, Visit visit) {
  for (std::int64_t first = 0; first < kernel.x[Axis::C]; first += kernel.sets().group_channels) {
    const Moments m = moments(kernel, sums, set, first);
    for (std::int64_t c = first; c < first + kernel.sets().group_channels; ++c) visit(c, m);
  }
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

void add_column_sums(const float* x, std::int64_t rows, std::int64_t channels, double* sums) {
  in_parallel(channels, summed_columns, [&](auto begin, auto end) {
    sum_plain({x, sums}, rows, channels, begin, end);
  });
}

void batch_norm_statistics(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  double* sums = call.write<double>(0);
  std::fill_n(sums, kernel.sets().sets * 2 * channels, 0.0);
  for_each_run(kernel, [&](const Run& run) {
    const MomentTerm term{call.read(0) + run.first_row * channels, sums + run.set * 2 * channels};
    in_parallel(channels, summed_columns,
                [&](auto begin, auto end) { sum_moments(term, run.rows, channels, begin, end); });
  });
}

void batch_norm_forward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  float *mean = static_cast<float*>(call.workspace), *factor = mean + channels;
  const float* scale = call.read(2);
  for_each_run(kernel, [&](const Run& run) {
    for_each_channel(kernel, call.read<double>(1) + run.set * 2 * channels, run.set,
                     [&](std::int64_t c, const Moments& m) {
                       mean[c] = static_cast<float>(m.mean);
                       factor[c] = static_cast<float>(scale[c] * m.reciprocal_deviation);
                     });
    in_parallel(run.rows, 16, [&](auto begin, auto end) {
      const std::int64_t start = (run.first_row + begin) * channels;
      normalize_rows(normalization(kernel, call, start, mean, factor), end - begin, channels);
    });
  });
}

void batch_norm_backward_sums(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C], sets = kernel.sets().sets;
  const double* forward_sums = call.read<double>(2);
  float* mean = static_cast<float*>(call.workspace);
  double* sums = call.write<double>(0);
  std::fill_n(sums, sets * 2 * channels, 0.0);
  for_each_run(kernel, [&](const Run& run) {
    const double* of_set = forward_sums + run.set * 2 * channels;
    const std::int64_t start = run.first_row * channels;
    double* sum = sums + run.set * 2 * channels;
    for_each_channel(kernel, of_set, run.set, [&](std::int64_t c, const Moments& m) {
      mean[c] = static_cast<float>(m.mean);
    });
    in_parallel(channels, summed_columns, [&](auto begin, auto end) {
      sum_gradients(gradient_sources(kernel, call, start, 3, 3), mean, sum, run.rows, channels,
                    begin, end);
    });
    // Corrects for the rounding of the mean to float, then divides by the deviation.
    for_each_channel(kernel, of_set, run.set, [&](std::int64_t c, const Moments& m) {
      sum[channels + c] =
          (sum[channels + c] - (m.mean - mean[c]) * sum[c]) * m.reciprocal_deviation;
    });
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    double dscale = 0, dshift = 0;
    for (std::int64_t set = 0; set < sets; ++set) {
      dshift += sums[set * 2 * channels + c];
      dscale += sums[(set * 2 + 1) * channels + c];
    }
    call.write(1)[c] = static_cast<float>(dscale);
    call.write(2)[c] = static_cast<float>(dshift);
  }
}

void batch_norm_backward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  float *mean = static_cast<float*>(call.workspace), *factor = mean + channels,
        *offset = factor + channels, *slope = offset + channels;
  const float* scale = call.read(4);
  for_each_run(kernel, [&](const Run& run) {
    const double* gradient_sums = call.read<double>(3) + run.set * 2 * channels;
    const double terms = kernel.sets().terms(run.set);
    // Adds up sum * scale over the channels in the group of channel c, and divides the total by the
    // number of terms.
    const auto mean_of = [&](const double* sums, std::int64_t c) {
      const std::int64_t group = kernel.sets().group_channels, first = c / group * group;
      return std::inner_product(sums + first, sums + first + group, scale + first, 0.0) / terms;
    };
    for_each_channel(
        kernel, call.read<double>(2) + run.set * 2 * channels, run.set,
        [&](std::int64_t c, const Moments& m) {
          const double r = m.reciprocal_deviation;
          const bool first = c % kernel.sets().group_channels == 0;
          mean[c] = static_cast<float>(m.mean);
          factor[c] = static_cast<float>(scale[c] * r);
          offset[c] = first ? static_cast<float>(r * mean_of(gradient_sums, c)) : offset[c - 1];
          slope[c] = first ? static_cast<float>(r * r * mean_of(gradient_sums + channels, c))
                           : slope[c - 1];
        });
    in_parallel(run.rows, 16, [&](auto begin, auto end) {
      const std::int64_t start = (run.first_row + begin) * channels;
      gradient_rows(gradient_sources(kernel, call, start, 5, 0), call.write(0) + start,
                    {mean, factor, offset, slope}, end - begin, channels);
    });
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
  const std::int64_t channels = kernel.x[Axis::C];
  const float *mean = call.read(1), *variance = mean + channels, *scale = call.read(2);
  float* factor = static_cast<float*>(call.workspace);
  for (std::int64_t c = 0; c < channels; ++c)
    factor[c] = static_cast<float>(
        scale[c] / std::sqrt(double{variance[c]} + kernel.as<NormalizationAttributes>().epsilon));
  in_parallel(kernel.x.elements() / channels, 16, [&](auto begin, auto end) {
    normalize_rows(normalization(kernel, call, begin * channels, mean, factor), end - begin,
                   channels);
  });
}

}  // namespace stratplan::cpu
