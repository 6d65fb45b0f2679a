#include "runtime/cpu/convolution/route.hpp"

#include <algorithm>
#include <array>

#include "runtime/cpu/convolution/winograd.hpp"

namespace stratplan::cpu {
namespace {

bool is_padded(const Kernel& kernel) {
  return std::any_of(kernel.windows().begin(), kernel.windows().end(),
                     [](const Window& w) { return w.pad_before != 0 || w.pad_after != 0; });
}

bool is_strided(const Kernel& kernel) {
  return std::any_of(kernel.windows().begin(), kernel.windows().end(),
                     [](const Window& w) { return w.stride != 1; });
}

std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}

bool covers_input(const Kernel& kernel) {
  if (kernel.as<ConvolutionAttributes>().groups > 1 || is_padded(kernel) ||
      positions(kernel.y) != 1)
    return false;
  return std::all_of(spatial_axes.begin(), spatial_axes.end(), [&](Axis axis) {
    const Window& w = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
    return w.kernel == kernel.x[axis] && (w.dilation == 1 || w.kernel == 1);
  });
}

bool is_point(const Kernel& kernel) {
  return std::all_of(kernel.windows().begin(), kernel.windows().end(),
                     [](const Window& w) { return w.kernel == 1; });
}

// The rules below come from measurements of oneDNN 2.6.3 on a Zen 3 core (AVX2), with one thread.
// The shapes were those of ResNet-50 at 4 samples and a dozen others. Times include the reorders of
// weights and activations, except in the row "without reorders". Milliseconds for all convolutions
// of ResNet-50:
//                       forward   data   filter    sum
//   channels last         384     368     524     1276
//   blocked               398     381     460     1239
//     without reorders    354     340     413     1108
//   best per convolution  364     353     444     1161
// A blocked convolution without its reorders is faster than a channels-last one. Whether the gain
// exceeds the cost of the reorders depends on the multiply-adds per element moved. Unfolded
// convolutions gain where the library's generated kernels are weak: filter gradients, strides, and
// rows shorter than a block of registers. The next table gives milliseconds on two cores at once,
// in the order channels last, blocked, unfolded. Its columns name the window, /stride,
// channels-filters and extent:
//             3x3 64-64 56^2   3x3/2 512-512 14^2   1x1/2 1024-2048 14^2   3x3x3 16-32 64^3
//   filter    19.1 15.6 12.1   23.6 18.4 11.5       21.0 17.1 10.5         176 263 121
//             3x3 64-64 56^2   3x3/2 512-512 14^2   3x3 512-512 7^2        3x3x3 16-32 64^3
//   forward   13.1 11.1 11.8   15.8 14.9 11.5       13.6 13.3 11.1         89 98 136

/// Returns the preferred route of a point convolution, whose window is 1 x 1 x 1. Point
/// convolutions do the least work per element. Reorders of activations therefore hardly ever pay,
/// except for filter gradients over many channels.
Route point_route(const Kernel& kernel) {
  const std::int64_t rows = kernel.y.elements() / kernel.y[Axis::C], c = kernel.x[Axis::C],
                     f = kernel.y[Axis::C];
  const bool strided = is_strided(kernel);
  switch (kernel.kind) {
    case KernelKind::ConvolutionBackwardData:
      if (rows < 512) return Route::Blocked;
      return strided ? Route::ChannelsLast : Route::MatrixProduct;
    case KernelKind::ConvolutionBackwardFilter:
      if (strided) return Route::Unfolded;
      if (rows <= 256) return Route::MatrixProduct;
      return c * f / (c + f) >= 100 ? Route::Blocked : Route::ChannelsLast;
    default: return Route::ChannelsLast;
  }
}

/// Whether there are enough outputs for Winograd's transform to pay off. Transforming the filters
/// takes as much work as about 200 outputs. A filter gradient reads and writes its transformed sums
/// for each plane, so planes must be large too.
bool winograd_pays(const Kernel& kernel) {
  const std::int64_t plane = kernel.y[Axis::N] * kernel.y[Axis::H] * kernel.y[Axis::W];
  return plane * kernel.y[Axis::D] >= 320 &&
         (kernel.kind != KernelKind::ConvolutionBackwardFilter || plane >= 256);
}

Route window_route(const Kernel& kernel) {
  if (suits_winograd(kernel) && winograd_pays(kernel)) return Route::Winograd;
  const std::int64_t c = kernel.x[Axis::C], f = kernel.y[Axis::C];
  const bool whole_blocks = c % 8 == 0 && f % 8 == 0;
  std::int64_t columns = c;
  for (const Window& window : kernel.windows()) columns *= window.kernel;
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward:
      if (c >= 16 && columns >= 128 && (is_strided(kernel) || (c >= 64 && kernel.y[Axis::W] < 8)))
        return Route::Unfolded;
      return whole_blocks && c >= 64 ? Route::Blocked : Route::ChannelsLast;
    case KernelKind::ConvolutionBackwardData:
      return whole_blocks && f >= 64 ? Route::Blocked : Route::ChannelsLast;
    default:
      if (columns >= 128) return Route::Unfolded;
      // The channels-last kernel takes whole rows of outputs at a time, and long rows fall out of
      // the cache.
      return kernel.x[Axis::D] == 1 && kernel.y[Axis::W] >= 192 ? Route::Blocked
                                                                : Route::ChannelsLast;
  }
}

}  // namespace

std::string_view name_of(Route route) {
  constexpr std::array<std::string_view, 6> names{"matrix_product", "winograd", "unfolded",
                                                  "channels_last",  "blocked",  "planar"};
  return names[static_cast<std::size_t>(route)];
}

std::optional<MatrixShape> as_matrix_product(const Kernel& kernel) {
  const std::int64_t f = kernel.y[Axis::C];
  if (covers_input(kernel))
    return MatrixShape{kernel.x[Axis::N], kernel.x.elements() / kernel.x[Axis::N], f};
  if (kernel.as<ConvolutionAttributes>().groups == 1 && is_point(kernel) && !is_strided(kernel) &&
      !is_padded(kernel) && kernel.x[Axis::D] == kernel.y[Axis::D] &&
      kernel.x[Axis::H] == kernel.y[Axis::H] && kernel.x[Axis::W] == kernel.y[Axis::W])
    return MatrixShape{kernel.y.elements() / f, kernel.x[Axis::C], f};
  return std::nullopt;
}

std::vector<Route> routes(const Kernel& kernel, bool wide_vectors) {
  if (covers_input(kernel)) return {Route::MatrixProduct};
  Route first = Route::ChannelsLast;
  if (!wide_vectors && kernel.as<ConvolutionAttributes>().groups == 1)
    first = is_point(kernel) ? point_route(kernel) : window_route(kernel);
  if (first == Route::MatrixProduct && !as_matrix_product(kernel)) first = Route::ChannelsLast;
  std::vector<Route> order{first};
  for (Route other : {Route::ChannelsLast, Route::Blocked, Route::Planar})
    if (other != first) order.push_back(other);
  return order;
}

}  // namespace stratplan::cpu
