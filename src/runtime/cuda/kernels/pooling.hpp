#pragma once
// Pooling. Each output gathers from the inputs under its window. Each input's gradient gathers from
// the outputs whose windows cover the input. Padding never wins a maximum, and among equal elements
// the first in the window wins. A window that reads only padding gives 0.
#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/activations.hpp"
#include "runtime/cuda/kernels/support/places.hpp"

namespace stratplan::cuda_kernels {

SP_DEVICE inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return b == 1 ? a : a / b;
}

/// The taps [first, last) of an output's window that lie inside [0, extent), and the input position
/// of tap 0.
struct Taps {
  std::int64_t origin, step, first, last;

  SP_DEVICE Taps(const Window& window, std::int64_t output, std::int64_t extent)
      : origin(output * window.stride - window.pad_before), step(window.dilation) {
    first = origin < 0 ? quotient(step - 1 - origin, step) : 0;
    last = origin >= extent ? 0 : quotient(extent - 1 - origin, step) + 1;
    if (last > window.kernel) last = window.kernel;
  }
  SP_DEVICE std::int64_t count() const { return last > first ? last - first : 0; }
  SP_DEVICE std::int64_t at(std::int64_t tap) const { return origin + tap * step; }
};

/// The outputs [first, last) whose windows reach over an input position. The position may lie in a
/// gap between taps.
struct Cover {
  std::int64_t position, first, last;

  SP_DEVICE Cover(const Window& window, std::int64_t input, std::int64_t extent)
      : position(input + window.pad_before) {
    const std::int64_t before = position - window.span() + 1;
    first = before > 0 ? quotient(before + window.stride - 1, window.stride) : 0;
    last = position < 0 ? 0 : quotient(position, window.stride) + 1;
    if (last > extent) last = extent;
  }
  /// Returns the tap of the window of `output` that lies on the input, or -1 if no tap does.
  SP_DEVICE std::int64_t tap(const Window& window, std::int64_t output) const {
    const std::int64_t offset = position - output * window.stride,
                       tap = quotient(offset, window.dilation);
    return tap * window.dilation == offset ? tap : -1;
  }
};

struct OutputPosition {
  std::int64_t d, h, w;
};

struct Pool {
  static constexpr int slots = 3;
  Shape x, y;
  Window d, h, w;
  bool count_padding;

  explicit Pool(const Kernel& kernel)
      : x(kernel.x),
        y(kernel.y),
        d(kernel.windows()[0]),
        h(kernel.windows()[1]),
        w(kernel.windows()[2]),
        count_padding(kernel.as<PoolAttributes>().count_padding) {}

  /// Calls fetch(slot, element of x), then use(slot, tap), for the inputs under a window, in the
  /// order of the taps. Up to `slots` fetches along W are in flight together.
  template <class Fetch, class Use>
  SP_DEVICE void for_taps(const Place& at, const Fetch& fetch, const Use& use) const {
    const Taps along_d(d, at.d, x[Axis::D]), along_h(h, at.h, x[Axis::H]),
        along_w(w, at.w, x[Axis::W]);
    for (std::int64_t kd = along_d.first; kd < along_d.last; ++kd)
      for (std::int64_t kh = along_h.first; kh < along_h.last; ++kh) {
        const std::int64_t row = row_of(x, at.n, along_d.at(kd), along_h.at(kh), 0) + at.channel,
                           tap = (kd * h.kernel + kh) * w.kernel;
        for (std::int64_t kw = along_w.first; kw < along_w.last; kw += slots) {
          for (int slot = 0; slot < slots; ++slot)
            if (kw + slot < along_w.last) fetch(slot, row + along_w.at(kw + slot) * x[Axis::C]);
          for (int slot = 0; slot < slots; ++slot)
            if (kw + slot < along_w.last) use(slot, static_cast<std::int32_t>(tap + kw + slot));
        }
      }
  }
  /// Calls fetch(slot, element of y), then use(slot, tap, position), for the outputs whose windows
  /// have a tap on an input.
  template <class Fetch, class Use>
  SP_DEVICE void for_covers(const Place& at, const Fetch& fetch, const Use& use) const {
    const Cover along_d(d, at.d, y[Axis::D]), along_h(h, at.h, y[Axis::H]),
        along_w(w, at.w, y[Axis::W]);
    for (std::int64_t od = along_d.first; od < along_d.last; ++od)
      for (std::int64_t oh = along_h.first; oh < along_h.last; ++oh) {
        const std::int64_t kd = along_d.tap(d, od), kh = along_h.tap(h, oh);
        if (kd < 0 || kh < 0) continue;
        const std::int64_t row = row_of(y, at.n, od, oh, 0) + at.channel,
                           tap = (kd * h.kernel + kh) * w.kernel;
        for (std::int64_t ow = along_w.first; ow < along_w.last; ow += slots) {
          for (int slot = 0; slot < slots; ++slot)
            if (ow + slot < along_w.last) fetch(slot, row + (ow + slot) * y[Axis::C]);
          for (int slot = 0; slot < slots; ++slot) {
            const std::int64_t kw = ow + slot < along_w.last ? along_w.tap(w, ow + slot) : -1;
            if (kw >= 0)
              use(slot, static_cast<std::int32_t>(tap + kw), OutputPosition{od, oh, ow + slot});
          }
        }
      }
  }
  /// Returns 1 / the divisor of an average, or 0 if the divisor is 0, because the window reads only
  /// padding.
  SP_DEVICE float share(const OutputPosition& at) const {
    const std::int64_t count = count_padding ? d.kernel * h.kernel * w.kernel
                                             : Taps(d, at.d, x[Axis::D]).count() *
                                                   Taps(h, at.h, x[Axis::H]).count() *
                                                   Taps(w, at.w, x[Axis::W]).count();
    return count == 0 ? 0 : 1 / static_cast<float>(count);
  }
};

template <class T>
struct MaxPoolForwardWork {
  Pool pool;
  const T* x;
  T* y;
  std::int32_t* index;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    Pack<float, width> best{}, value[Pool::slots]{};
    Pack<std::int32_t, width> where{};
    bool first = true;
    const auto fetch = [&](int slot, std::int64_t input) { value[slot] = load<width>(x + input); };
    pool.for_taps(at, fetch, [&](int slot, std::int32_t tap) {
      for (int k = 0; k < width; ++k) {
        const bool wins = first || value[slot][k] > best[k];
        best[k] = wins ? value[slot][k] : best[k];
        where[k] = wins ? tap : where[k];
      }
      first = false;
    });
    store(y + at.element, best);
    store(index + at.element, where);
  }
};
template <class T, class Launch>
void max_pool_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const MaxPoolForwardWork<T> work{Pool(kernel), call.read<T>(0), call.write<T>(0),
                                   call.write<std::int32_t>(1)};
  for_places(launch, kernel.y, {work.x, work.y, work.index}, work);
}

template <class T>
struct MaxPoolBackwardWork {
  Pool pool;
  const T* dy;
  const std::int32_t* index;
  T* dx;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    Pack<float, width> sum{}, gradient[Pool::slots]{};
    Pack<std::int32_t, width> where[Pool::slots]{};
    const auto fetch = [&](int slot, std::int64_t output) {
      where[slot] = load<width>(index + output);
      gradient[slot] = load<width>(dy + output);
    };
    pool.for_covers(at, fetch, [&](int slot, std::int32_t tap, const OutputPosition&) {
      for (int k = 0; k < width; ++k) sum[k] += where[slot][k] == tap ? gradient[slot][k] : 0;
    });
    store(dx + at.element, sum);
  }
};
template <class T, class Launch>
void max_pool_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const MaxPoolBackwardWork<T> work{Pool(kernel), call.read<T>(0), call.read<std::int32_t>(1),
                                    call.write<T>(0)};
  for_places(launch, kernel.x, {work.dy, work.index, work.dx}, work);
}

template <class T>
struct AveragePoolForwardWork {
  Pool pool;
  const T* x;
  T* y;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    Pack<float, width> sum{}, value[Pool::slots]{};
    const auto fetch = [&](int slot, std::int64_t input) { value[slot] = load<width>(x + input); };
    pool.for_taps(at, fetch, [&](int slot, std::int32_t) {
      for (int k = 0; k < width; ++k) sum[k] += value[slot][k];
    });
    const float share = pool.share({at.d, at.h, at.w});
    for (int k = 0; k < width; ++k) sum[k] *= share;
    store(y + at.element, sum);
  }
};
template <class T, class Launch>
void average_pool_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const AveragePoolForwardWork<T> work{Pool(kernel), call.read<T>(0), call.write<T>(0)};
  for_places(launch, kernel.y, {work.x, work.y}, work);
}

template <class T>
struct AveragePoolBackwardWork {
  Pool pool;
  const T* dy;
  T* dx;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    Pack<float, width> sum{}, gradient[Pool::slots]{};
    const auto fetch = [&](int slot, std::int64_t output) {
      gradient[slot] = load<width>(dy + output);
    };
    pool.for_covers(at, fetch, [&](int slot, std::int32_t, const OutputPosition& output) {
      const float share = pool.share(output);
      for (int k = 0; k < width; ++k) sum[k] += share * gradient[slot][k];
    });
    store(dx + at.element, sum);
  }
};
template <class T, class Launch>
void average_pool_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const AveragePoolBackwardWork<T> work{Pool(kernel), call.read<T>(0), call.write<T>(0)};
  for_places(launch, kernel.x, {work.dy, work.dx}, work);
}

// ---------------------------------------------------------------- means over space

template <class T>
struct SpatialMeanTerm {
  const T* x;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto value = load<width>(x + i);
      for (int k = 0; k < width; ++k) sum[0][k] += value[k];
    }
  }
};
template <class T, class Launch>
void spatial_mean_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t channels = kernel.x[Axis::C];
  sum_strips<1>(launch, a_set_each_sample(kernel.x), channels, {call.read<T>(0)}, call.workspace,
                SpatialMeanTerm<T>{call.read<T>(0)},
                Quotient<T>{call.write<T>(0), channels, kernel.as<MeanAttributes>().positions});
}

template <class T>
struct SpatialMeanGradient {
  const T* dy;
  T* dx;
  std::int64_t channels;
  double positions;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    Pack<float, width> share{};
    for (int k = 0; k < width; ++k)
      share[k] = static_cast<float>(dy[strip.set * channels + strip.channel + k] / positions);
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) store(dx + i, share);
  }
};
template <class T, class Launch>
void spatial_mean_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t channels = kernel.x[Axis::C];
  for_strips(launch, a_set_each_sample(kernel.x), channels, {call.write<T>(0)},
             SpatialMeanGradient<T>{call.read<T>(0), call.write<T>(0), channels,
                                    kernel.as<MeanAttributes>().positions});
}

}  // namespace stratplan::cuda_kernels
