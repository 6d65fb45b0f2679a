#include "interop/onnx/extents.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace stratplan::interop {

std::int64_t within(std::int64_t position, std::int64_t extent) {
  const std::int64_t place = position < 0 ? position + extent : position;
  need(place >= 0 && place < extent,
       fmt::format("position {} is out of range: the number of positions is {}", position, extent));
  return place;
}

std::vector<std::int64_t> from_front(std::vector<std::int64_t> axes, std::size_t rank) {
  for (std::int64_t& axis : axes) axis = within(axis, static_cast<std::int64_t>(rank));
  return axes;
}

void need_permutation(const std::vector<std::int64_t>& order, std::size_t rank) {
  std::vector<std::int64_t> sorted = order, axes(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  need(sorted == axes,
       fmt::format("perm ({}) is no permutation of {} axes", fmt::join(order, ", "), rank));
}

Extents squeezed(const Extents& extents, const std::vector<std::int64_t>& axes) {
  std::vector<bool> drop(extents.size(), false);
  for (const std::int64_t axis : from_front(axes, extents.size()))
    drop[static_cast<std::size_t>(axis)] = true;
  Extents result;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    need(!drop[i] || extents[i] == 1,
         fmt::format("expected an extent of 1 to squeeze, found {}", extents[i]));
    if (!drop[i] && !(axes.empty() && extents[i] == 1)) result.push_back(extents[i]);
  }
  return result;
}

Extents unsqueezed(const Extents& extents, const std::vector<std::int64_t>& axes) {
  Extents result(extents.size() + axes.size(), 0);
  for (const std::int64_t axis : from_front(axes, result.size()))
    result[static_cast<std::size_t>(axis)] = 1;
  auto next = extents.begin();
  for (std::int64_t& extent : result)
    if (extent == 0 && next != extents.end()) extent = *next++;
  need(next == extents.end(), "expected different axes to unsqueeze, found one axis twice");
  return result;
}

Extents flattened(const Extents& extents, std::int64_t axis) {
  const std::int64_t rank = std::ssize(extents), at = axis < 0 ? axis + rank : axis;
  need(at >= 0 && at <= rank,
       fmt::format("axis {} is out of range: the number of axes is {}", axis, rank));
  return {elements_of({extents.begin(), extents.begin() + at}),
          elements_of({extents.begin() + at, extents.end()})};
}

Extents reshaped(const Extents& extents, Extents target, bool zero_is_zero) {
  const std::int64_t elements = elements_of(extents);
  std::int64_t known = 1;
  auto open = target.end();
  for (auto extent = target.begin(); extent != target.end(); ++extent) {
    if (*extent == 0 && !zero_is_zero) {
      need(extent - target.begin() < std::ssize(extents),
           "a 0 in the new shape keeps an axis that the input does not have");
      *extent = extents[static_cast<std::size_t>(extent - target.begin())];
    }
    if (*extent == -1) {
      need(open == target.end(),
           "expected at most one open extent (-1) in the new shape, found two");
      open = extent;
    } else {
      need(*extent >= 0 && !__builtin_mul_overflow(known, *extent, &known),
           fmt::format("the extent {} of the new shape is negative or too large", *extent));
    }
  }
  if (open != target.end()) {
    need(known > 0 && elements % known == 0,
         fmt::format("cannot reshape {} elements: {} does not divide their number", elements,
                     known));
    *open = elements / known;
  }
  need(elements_of(target) == elements,
       fmt::format("cannot reshape ({}) to ({}), which has another number of elements",
                   fmt::join(extents, ", "), fmt::join(target, ", ")));
  return target;
}

}  // namespace stratplan::interop
