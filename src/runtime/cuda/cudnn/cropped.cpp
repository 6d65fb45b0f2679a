#include "runtime/cuda/cudnn/cropped.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan::cudnn {

Cropped cropped(const Kernel& kernel) {
  Cropped result{.kernel = kernel};
  for (const Axis axis : spatial_axes) {
    Window& window = result.kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
    std::int64_t& extent = result.kernel.x[axis];
    const std::int64_t before = std::max<std::int64_t>(0, -window.pad_before);
    const std::int64_t end = (kernel.y[axis] - 1) * window.stride + window.span() -
                             window.pad_before;  // end of the last window in x
    SP_ASSERT(end <= extent + window.pad_after,
              "{}: the windows along axis {} end at {}, beyond the extent {} of x and its padding",
              kernel.key(), axis_names[static_cast<std::size_t>(axis)], end, extent);
    const std::int64_t unread = std::max<std::int64_t>(0, extent - end);
    const std::int64_t after = unread < window.stride ? 0 : unread;
    result.whole = result.whole && before == 0 && after == 0;
    result.from[static_cast<std::size_t>(axis)] = before;
    window.pad_before += before;
    window.pad_after = std::max<std::int64_t>(0, end - extent);
    extent = std::max<std::int64_t>(0, extent - before - after);
    Window even = window;
    even.pad_after = window.pad_before;
    if (even.pad_after > window.pad_after && even.output_extent(extent) == kernel.y[axis])
      window = even;
  }
  return result;
}

}  // namespace stratplan::cudnn
