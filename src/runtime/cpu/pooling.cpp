// Pooling along rows of channels. Each output row gathers from, or scatters to, the input rows that
// its window covers. Only samples run in parallel, so that scattered sums are added in a fixed
// order.
#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vectors.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan::cpu {
namespace {

/// The input rows under one window. Forward passes take them together, so that results stay in
/// registers. Windows of more than `capacity` rows are split into pieces.
struct TapRows {
  static constexpr int capacity = 64;
  const float* row[capacity];
  std::int32_t tap[capacity];
  int count = 0;
};

/// Updates `best` to the maximum of itself and all rows, and `index` to the tap of that maximum. Of
/// equal elements the first stays.
SP_CLONES void max_rows(const TapRows& rows, float* best, std::int32_t* index,
                        std::int64_t channels) {
  std::int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    Float8 largest = load8(best + c);
    Int8 at = load<Int8>(index + c);
    for (int i = 0; i < rows.count; ++i) {
      const Float8 x = load8(rows.row[i] + c);
      const Int8 larger = x > largest;
      largest = larger ? x : largest;
      at = larger ? Int8{} + rows.tap[i] : at;
    }
    store(best + c, largest);
    store(index + c, at);
  }
  for (; c < channels; ++c) {
    for (int i = 0; i < rows.count; ++i) {
      if (!(rows.row[i][c] > best[c])) continue;
      best[c] = rows.row[i][c];
      index[c] = rows.tap[i];
    }
  }
}

/// sum += factor * (sum of all rows)
SP_CLONES void add_scaled_rows(const TapRows& rows, float factor, float* sum,
                               std::int64_t channels) {
  std::int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    Float8 partial{};
    for (int i = 0; i < rows.count; ++i) partial += load8(rows.row[i] + c);
    store(sum + c, load8(sum + c) + factor * partial);
  }
  for (; c < channels; ++c) {
    float partial = 0;
    for (int i = 0; i < rows.count; ++i) partial += rows.row[i][c];
    sum[c] += factor * partial;
  }
}

SP_CLONES void scatter_row(const float* dy, const std::int32_t* index, std::int32_t tap, float* dx,
                           std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) dx[c] += index[c] == tap ? dy[c] : 0;
}

SP_CLONES void add_scaled_row(const float* x, float factor, float* sum, std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) sum[c] += factor * x[c];
}

struct Place {
  std::int64_t n, d, h, w;
};

template <class Visit>
void for_each_output(const Kernel& kernel, std::int64_t first_sample, std::int64_t last_sample,
                     Visit visit) {
  Place at{};
  for (at.n = first_sample; at.n < last_sample; ++at.n)
    for (at.d = 0; at.d < kernel.y[Axis::D]; ++at.d)
      for (at.h = 0; at.h < kernel.y[Axis::H]; ++at.h)
        for (at.w = 0; at.w < kernel.y[Axis::W]; ++at.w)
          visit(at, row_begin(kernel.y, at.n, at.d, at.h, at.w));
}

/// The taps [first, last) of a window that lie inside [0, extent), and the input position of tap 0.
struct Taps {
  Taps(const Window& window, std::int64_t output, std::int64_t extent)
      : origin(output * window.stride - window.pad_before), step(window.dilation) {
    first = origin < 0 ? (-origin + step - 1) / step : 0;
    last = std::min(window.kernel, origin >= extent ? 0 : (extent - 1 - origin) / step + 1);
  }
  std::int64_t count() const { return std::max<std::int64_t>(0, last - first); }
  std::int64_t at(std::int64_t tap) const { return origin + tap * step; }
  std::int64_t origin, step, first, last;
};

struct WindowTaps {
  WindowTaps(const Kernel& kernel, const Place& at)
      : d(kernel.windows()[0], at.d, kernel.x[Axis::D]),
        h(kernel.windows()[1], at.h, kernel.x[Axis::H]),
        w(kernel.windows()[2], at.w, kernel.x[Axis::W]) {}
  std::int64_t count() const { return d.count() * h.count() * w.count(); }
  Taps d, h, w;
};

/// Calls visit(tap, first element of the input row) for the input rows under a window. Padding is
/// left out.
template <class Visit>
void for_each_tap(const Kernel& kernel, const Place& at, const WindowTaps& taps, Visit visit) {
  for (std::int64_t kd = taps.d.first; kd < taps.d.last; ++kd)
    for (std::int64_t kh = taps.h.first; kh < taps.h.last; ++kh)
      for (std::int64_t kw = taps.w.first; kw < taps.w.last; ++kw)
        visit(static_cast<std::int32_t>(
                  (kd * kernel.windows()[1].kernel + kh) * kernel.windows()[2].kernel + kw),
              row_begin(kernel.x, at.n, taps.d.at(kd), taps.h.at(kh), taps.w.at(kw)));
}

/// Calls visit(TapRows) for the input rows under a window, in order.
template <class Visit>
void for_taps_together(const Kernel& kernel, const float* x, const Place& at,
                       const WindowTaps& taps, Visit visit) {
  TapRows rows;
  for_each_tap(kernel, at, taps, [&](std::int32_t tap, std::int64_t input) {
    rows.row[rows.count] = x + input;
    rows.tap[rows.count++] = tap;
    if (rows.count < TapRows::capacity) return;
    visit(rows);
    rows.count = 0;
  });
  if (rows.count > 0) visit(rows);
}

/// Returns 1 / divisor of an averaging window, or 0 if the divisor is 0 (the window reads nothing
/// but padding).
float share(const Kernel& kernel, const WindowTaps& taps) {
  const auto& [windows, count_padding] = kernel.as<PoolAttributes>();
  const auto& [d, h, w] = windows;
  const std::int64_t count = count_padding ? d.kernel * h.kernel * w.kernel : taps.count();
  return count == 0 ? 0 : 1 / static_cast<float>(count);
}

void clear_samples(const Kernel& kernel, float* dx, std::int64_t first, std::int64_t last) {
  const std::int64_t sample = kernel.x.elements() / kernel.x[Axis::N];
  std::fill(dx + first * sample, dx + last * sample, 0.0F);
}

}  // namespace

void max_pool_forward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const float* x = call.read(0);
  float* y = call.write(0);
  auto* index = call.write<std::int32_t>(1);
  in_parallel(kernel.x[Axis::N], 1, [&](auto begin, auto end) {
    for_each_output(kernel, begin, end, [&](const Place& at, std::int64_t output) {
      const WindowTaps taps(kernel, at);
      if (taps.count() == 0) {
        std::fill_n(y + output, channels, 0.0F);
        std::fill_n(index + output, channels, 0);
        return;
      }
      bool first = true;
      for_taps_together(kernel, x, at, taps, [&](const TapRows& rows) {
        if (first) {
          std::copy_n(rows.row[0], channels, y + output);
          std::fill_n(index + output, channels, rows.tap[0]);
        }
        first = false;
        max_rows(rows, y + output, index + output, channels);
      });
    });
  });
}

void max_pool_backward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  const float* dy = call.read(0);
  const auto* index = call.read<std::int32_t>(1);
  in_parallel(kernel.x[Axis::N], 1, [&](auto begin, auto end) {
    clear_samples(kernel, call.write(0), begin, end);
    for_each_output(kernel, begin, end, [&](const Place& at, std::int64_t output) {
      for_each_tap(kernel, at, WindowTaps(kernel, at), [&](std::int32_t tap, std::int64_t input) {
        scatter_row(dy + output, index + output, tap, call.write(0) + input, channels);
      });
    });
  });
}

void average_pool_forward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  in_parallel(kernel.x[Axis::N], 1, [&](auto begin, auto end) {
    for_each_output(kernel, begin, end, [&](const Place& at, std::int64_t output) {
      const WindowTaps taps(kernel, at);
      const float factor = share(kernel, taps);
      std::fill_n(call.write(0) + output, channels, 0.0F);
      for_taps_together(kernel, call.read(0), at, taps, [&](const TapRows& rows) {
        add_scaled_rows(rows, factor, call.write(0) + output, channels);
      });
    });
  });
}

void average_pool_backward(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.x[Axis::C];
  in_parallel(kernel.x[Axis::N], 1, [&](auto begin, auto end) {
    clear_samples(kernel, call.write(0), begin, end);
    for_each_output(kernel, begin, end, [&](const Place& at, std::int64_t output) {
      const WindowTaps taps(kernel, at);
      const float factor = share(kernel, taps);
      for_each_tap(kernel, at, taps, [&](std::int32_t, std::int64_t input) {
        add_scaled_row(call.read(0) + output, factor, call.write(0) + input, channels);
      });
    });
  });
}

void spatial_mean_forward(const Kernel& kernel, const KernelCall& call) {
  const double terms = kernel.as<MeanAttributes>().positions;
  const std::int64_t channels = kernel.x[Axis::C], rows = positions(kernel.x);
  double* sums = static_cast<double*>(call.workspace);
  for (std::int64_t n = 0; n < kernel.x[Axis::N]; ++n) {
    std::fill_n(sums, channels, 0.0);
    add_column_sums(call.read(0) + n * rows * channels, rows, channels, sums);
    for (std::int64_t c = 0; c < channels; ++c)
      call.write(0)[n * channels + c] = static_cast<float>(sums[c] / terms);
  }
}

void spatial_mean_backward(const Kernel& kernel, const KernelCall& call) {
  const double terms = kernel.as<MeanAttributes>().positions;
  const std::int64_t channels = kernel.x[Axis::C], rows = positions(kernel.x);
  for (std::int64_t n = 0; n < kernel.x[Axis::N]; ++n) {
    float* first = call.write(0) + n * rows * channels;
    for (std::int64_t c = 0; c < channels; ++c)
      first[c] = static_cast<float>(call.read(0)[n * channels + c] / terms);
    for (std::int64_t row = 1; row < rows; ++row)
      std::copy_n(first, channels, first + row * channels);
  }
}

// ---------------------------------------------------------------- reductions

namespace {

/// Calls visit(x, y) with the offsets of each row of channels and of its greatest element.
template <class Visit>
void for_rows(const Kernel& kernel, Visit visit) {
  const std::int64_t channels = kernel.x[Axis::C], rows = kernel.x.elements() / channels;
  SP_ASSERT(kernel.y.elements() == rows, "the greatest of all channels, but y has {} elements, {}",
            kernel.y.elements(), kernel.key());
  in_parallel(rows, std::max<std::int64_t>(1, element_grain / channels),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row) visit(row * channels, row);
              });
}

void greatest(const Kernel& kernel, const float* x, float* y) {
  for_rows(kernel, [&](std::int64_t first, std::int64_t row) {
    y[row] = *std::max_element(x + first, x + first + kernel.x[Axis::C]);
  });
}

void gradient_of_greatest(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *dy = call.read(1);
  float* dx = call.write(0);
  for_rows(kernel, [&](std::int64_t first, std::int64_t row) {
    const std::int64_t last = first + kernel.x[Axis::C];
    const float value = *std::max_element(x + first, x + last);
    const auto times = static_cast<float>(std::count(x + first, x + last, value));
    for (std::int64_t i = first; i < last; ++i) dx[i] = x[i] == value ? dy[row] / times : 0;
  });
}

}  // namespace

/// A sum is the gradient of a tensor that is broadcast along the summed axes, so it runs in the
/// loops of functions of two tensors.
void reduce_forward(const Kernel& kernel, const KernelCall& call) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  if (function == Reduction::Max) return greatest(kernel, call.read(0), call.write(0));
  const Kernel sum{.kind = KernelKind::BinaryBackward,
                   .x = kernel.y,
                   .y = kernel.x,
                   .attributes = Binary{BinaryFunction::BroadcastAdd, kernel.x, 0}};
  binary_backward(sum, call);
  if (divisor == 1) return;
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
    call.write(0)[i] = static_cast<float>(call.write(0)[i] / divisor);
}

void reduce_backward(const Kernel& kernel, const KernelCall& call) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  if (function == Reduction::Max) return gradient_of_greatest(kernel, call);
  const Kernel share{.kind = KernelKind::BinaryForward,
                     .x = kernel.y,
                     .y = kernel.x,
                     .attributes = Binary{BinaryFunction::Multiply, Shape{}, 0}};
  const float factor = static_cast<float>(1 / divisor);
  const std::array<const void*, 2> reads{call.reads[0], &factor};
  binary_forward(share, {reads, call.writes, call.workspace, call.context});
}

}  // namespace stratplan::cpu
