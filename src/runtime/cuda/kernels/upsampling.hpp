#pragma once
// Upsampling, and padding with elements of the input. Each output element mixes input elements
// along D, H and W (model/network/scale.hpp). The shares along the three axes are multiplied. In
// the backward pass, each input gathers from the outputs that mix it.
#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/support/places.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// The two inputs that an output mixes along one axis. The second may have a share of 0.
struct Mixed {
  std::int64_t input[2];
  float share[2];

  SP_DEVICE Mixed(const Scale& scale, std::int64_t output, std::int64_t extent) {
    const Mixture found = mixture(scale, output);
    input[0] = inside(scale.ends, found.before, extent);
    input[1] = inside(scale.ends, found.after, extent);
    share[1] = static_cast<float>(found.share);
    share[0] = 1 - share[1];
  }
};

/// The positions at which outputs read an input along one axis: its own, and its images beyond the
/// ends if positions are mirrored there.
struct Images {
  std::int64_t at[3];
  int count = 0;

  SP_DEVICE Images(const Scale& scale, std::int64_t input, std::int64_t extent) {
    at[count++] = input;
    if (scale.ends != Ends::Mirror) return;
    if (input > 0) at[count++] = -input;
    if (input + 1 < extent) at[count++] = 2 * (extent - 1) - input;
  }
};

/// The outputs [first, last) that mix an input along one axis. In linear mode, the share of an
/// input first rises and then falls over these outputs. Outputs beyond the center of the first or
/// last input use only that input, so its share is 1 there.
struct Mixers {
  std::int64_t first, last;  ///< outputs of the local piece
  std::int64_t step, start, unit;
  bool linear, at_begin, at_end;

  /// `input`: its position, or that of an image.
  SP_DEVICE Mixers(const Scale& scale, std::int64_t input, std::int64_t input_extent,
                   std::int64_t output_extent)
      : step(scale.step),
        // Output o lies at step * o + start, in 1 / unit of an input, from the center of this one.
        start(scale.start - scale.unit * input),
        unit(scale.unit),
        linear(scale.linear),
        at_begin(scale.ends == Ends::Clamp && input == 0),
        at_end(scale.ends == Ends::Clamp && input + 1 == input_extent) {
    // An output mixes this input if it lies in (-unit, unit), or [0, unit) in nearest mode.
    const std::int64_t begin = at_begin ? 0 : floor_divide((linear ? -unit : -1) - start, step) + 1;
    const std::int64_t end = at_end ? output_extent : floor_divide(unit - start - 1, step) + 1;
    first = begin < 0 ? 0 : begin;
    last = end < output_extent ? end : output_extent;
  }
  SP_DEVICE float share(std::int64_t output) const {
    if (!linear) return 1;
    const std::int64_t at = step * output + start;
    if ((at < 0 && at_begin) || (at > 0 && at_end)) return 1;
    return static_cast<float>(unit - (at < 0 ? -at : at)) / static_cast<float>(unit);
  }
};

template <class T>
struct UpsampleForwardWork {
  Shape x;
  Scale d, h, w;
  const T* from;
  T* to;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    const Mixed along_d(d, at.d, x[Axis::D]), along_h(h, at.h, x[Axis::H]),
        along_w(w, at.w, x[Axis::W]);
    Pack<float, width> sum{};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 2; ++k) {
          const float share = along_d.share[i] * along_h.share[j] * along_w.share[k];
          if (!(share > 0)) continue;
          const auto value = load<width>(
              from + row_of(x, at.n, along_d.input[i], along_h.input[j], along_w.input[k]) +
              at.channel);
          for (int c = 0; c < width; ++c) sum[c] += share * value[c];
        }
    store(to + at.element, sum);
  }
};
template <class T, class Launch>
void upsample_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& [d, h, w] = kernel.as<UpsampleAttributes>().scales;
  const T* x = call.read<T>(0);
  T* y = call.write<T>(0);
  for_places(launch, kernel.y, {x, y}, UpsampleForwardWork<T>{kernel.x, d, h, w, x, y});
}

template <class T>
struct UpsampleBackwardWork {
  Shape x, y;
  Scale d, h, w;
  const T* dy;
  T* dx;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    const Images images_d(d, at.d, x[Axis::D]), images_h(h, at.h, x[Axis::H]),
        images_w(w, at.w, x[Axis::W]);
    Pack<float, width> sum{};
    for (int i = 0; i < images_d.count; ++i)
      for (int j = 0; j < images_h.count; ++j)
        for (int k = 0; k < images_w.count; ++k)
          add<width>(at, Mixers(d, images_d.at[i], x[Axis::D], y[Axis::D]),
                     Mixers(h, images_h.at[j], x[Axis::H], y[Axis::H]),
                     Mixers(w, images_w.at[k], x[Axis::W], y[Axis::W]), sum);
    store(dx + at.element, sum);
  }
  template <int width>
  SP_DEVICE void add(const Place& at, const Mixers& along_d, const Mixers& along_h,
                     const Mixers& along_w, Pack<float, width>& sum) const {
    for (std::int64_t od = along_d.first; od < along_d.last; ++od)
      for (std::int64_t oh = along_h.first; oh < along_h.last; ++oh) {
        const float outer = along_d.share(od) * along_h.share(oh);
        for (std::int64_t ow = along_w.first; ow < along_w.last; ++ow) {
          const auto gradient = load<width>(dy + row_of(y, at.n, od, oh, ow) + at.channel);
          const float share = outer * along_w.share(ow);
          for (int c = 0; c < width; ++c) sum[c] += share * gradient[c];
        }
      }
  }
};
template <class T, class Launch>
void upsample_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& [d, h, w] = kernel.as<UpsampleAttributes>().scales;
  const T* dy = call.read<T>(0);
  T* dx = call.write<T>(0);
  for_places(launch, kernel.x, {dy, dx},
             UpsampleBackwardWork<T>{kernel.x, kernel.y, d, h, w, dy, dx});
}

}  // namespace stratplan::cuda_kernels
