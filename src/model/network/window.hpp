#pragma once
// The window of a convolution, pooling or padding along one dimension. partition/halo.hpp says
// which input interval an output interval needs, and thus which halo a rank needs.
#include <array>
#include <cstdint>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;

  /// The extent that the dilated kernel covers.
  constexpr std::int64_t span() const { return (kernel - 1) * dilation + 1; }
  /// The number of window positions over an input of this extent; 0 if the window does not fit.
  constexpr std::int64_t output_extent(std::int64_t input) const {
    const std::int64_t slack = input + pad_before + pad_after - span();
    return slack < 0 ? 0 : slack / stride + 1;
  }
  static constexpr auto fields() {
    return std::tuple(Field{"kernel", &Window::kernel}, Field{"stride", &Window::stride},
                      Field{"dilation", &Window::dilation},
                      Field{"pad_before", &Window::pad_before},
                      Field{"pad_after", &Window::pad_after});
  }
  friend constexpr bool operator==(const Window&, const Window&) = default;
  friend constexpr auto operator<=>(const Window&, const Window&) = default;
};

/// Windows along D, H, W.
using Windows = std::array<Window, 3>;

}  // namespace stratplan
