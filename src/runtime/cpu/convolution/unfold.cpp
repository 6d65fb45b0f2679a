#include "runtime/cpu/convolution/unfold.hpp"

#include "runtime/cpu/convolution/onednn.hpp"

namespace stratplan::cpu {
namespace {

constexpr std::int64_t rows_at_once = 512;

/// The shape of the unfolded windows as a matrix, with one row per output position and one column
/// per tap and channel.
struct Unfolded {
  std::int64_t rows, columns, filters;
  explicit Unfolded(const Kernel& kernel)
      : rows(kernel.y.elements() / kernel.y[Axis::C]),
        columns(kernel.x[Axis::C]),
        filters(kernel.y[Axis::C]) {
    for (const Window& window : kernel.windows()) columns *= window.kernel;
  }
};

/// The taps [first, last) of a window along one axis read x; the other taps read padding.
struct Taps {
  std::int64_t first, last, position;  ///< position: input position of tap 0, possibly outside x
};

Taps taps_inside(const Window& window, std::int64_t output, std::int64_t extent) {
  const std::int64_t position = output * window.stride - window.pad_before;
  const std::int64_t first =
      position >= 0 ? 0 : (-position + window.dilation - 1) / window.dilation;
  const std::int64_t last =
      position >= extent ? 0
                         : std::min(window.kernel, (extent - 1 - position) / window.dilation + 1);
  return {std::min(first, window.kernel), std::max(last, std::min(first, window.kernel)), position};
}

/// Writes the inputs of the window at one output position to `row`, with zeros for padding.
void unfold_row(const Kernel& kernel, const float* x, std::int64_t n, std::int64_t d,
                std::int64_t h, std::int64_t w, float* row) {
  const auto& [depth, height, width] = kernel.windows();
  const std::int64_t channels = kernel.x[Axis::C], run = width.kernel * channels;
  const Taps of_d = taps_inside(depth, d, kernel.x[Axis::D]),
             of_h = taps_inside(height, h, kernel.x[Axis::H]),
             of_w = taps_inside(width, w, kernel.x[Axis::W]);
  for (std::int64_t a = 0; a < depth.kernel; ++a) {
    for (std::int64_t b = 0; b < height.kernel; ++b, row += run) {
      if (a < of_d.first || a >= of_d.last || b < of_h.first || b >= of_h.last) {
        std::fill_n(row, run, 0.0F);
        continue;
      }
      const std::int64_t line =
          (n * kernel.x[Axis::D] + of_d.position + a * depth.dilation) * kernel.x[Axis::H] +
          of_h.position + b * height.dilation;
      const float* from =
          x + (line * kernel.x[Axis::W] + of_w.position + of_w.first * width.dilation) * channels;
      std::fill_n(row, of_w.first * channels, 0.0F);
      if (width.dilation == 1) {
        std::copy_n(from, (of_w.last - of_w.first) * channels, row + of_w.first * channels);
      } else {
        for (std::int64_t tap = of_w.first; tap < of_w.last;
             ++tap, from += width.dilation * channels)
          std::copy_n(from, channels, row + tap * channels);
      }
      std::fill_n(row + of_w.last * channels, (width.kernel - of_w.last) * channels, 0.0F);
    }
  }
}

/// Unfolds output positions [begin, end), counted through N, D, H, W, into `rows`.
void unfold(const Kernel& kernel, const float* x, std::int64_t begin, std::int64_t end,
            float* rows) {
  const std::int64_t columns = Unfolded(kernel).columns;
  in_parallel(end - begin, 16, [&](auto first, auto last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::int64_t rest = begin + i;
      const auto next = [&](Axis axis) {
        const std::int64_t index = rest % kernel.y[axis];
        rest /= kernel.y[axis];
        return index;
      };
      const std::int64_t w = next(Axis::W), h = next(Axis::H), d = next(Axis::D);
      unfold_row(kernel, x, rest, d, h, w, rows + i * columns);
    }
  });
}

/// Calls visit(begin, count, unfolded rows) for each block of output positions.
template <class Visit>
void for_each_block(const Kernel& kernel, const float* x, const KernelCall& call, Visit visit) {
  const Unfolded matrix(kernel);
  float* const rows = static_cast<float*>(call.workspace);
  for (std::int64_t begin = 0; begin < matrix.rows; begin += rows_at_once) {
    const std::int64_t end = std::min(matrix.rows, begin + rows_at_once);
    unfold(kernel, x, begin, end, rows);
    visit(begin, end - begin, rows);
  }
}

void unfolded_forward(const Kernel& kernel, const KernelCall& call) {
  const Unfolded matrix(kernel);
  for_each_block(kernel, call.read(0), call,
                 [&](std::int64_t begin, std::int64_t count, const float* rows) {
                   float* const y = call.write(0) + begin * matrix.filters;
                   if (kernel.as<ConvolutionAttributes>().bias)
                     for (std::int64_t i = 0; i < count; ++i)
                       std::copy_n(call.read(2), matrix.filters, y + i * matrix.filters);
                   multiply({rows, false}, {call.read(1), true}, y, count, matrix.filters,
                            matrix.columns, kernel.as<ConvolutionAttributes>().bias);
                   activate(kernel, y, count * matrix.filters);
                 });
}

void unfolded_backward_filter(const Kernel& kernel, const KernelCall& call) {
  const Unfolded matrix(kernel);
  for_each_block(kernel, call.read(0), call,
                 [&](std::int64_t begin, std::int64_t count, const float* rows) {
                   multiply({call.read(1) + begin * matrix.filters, true}, {rows, false},
                            call.write(0), matrix.filters, matrix.columns, count, begin > 0);
                 });
}

}  // namespace

std::unique_ptr<HostKernel> make_unfolded(const Kernel& kernel) {
  if (kernel.kind == KernelKind::ConvolutionBackwardData) return nullptr;
  const Unfolded matrix(kernel);
  const Bytes workspace{std::min(matrix.rows, rows_at_once) * matrix.columns *
                        size_of(DataType::F32)};
  return std::make_unique<FunctionKernel>(
      kernel,
      kernel.kind == KernelKind::ConvolutionForward ? unfolded_forward : unfolded_backward_filter,
      "unfold and gemm", workspace);
}

}  // namespace stratplan::cpu
