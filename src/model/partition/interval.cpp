#include "model/partition/interval.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

Interval divided_block(std::int64_t extent, std::int64_t parts, std::int64_t index,
                       std::int64_t quantum) {
  SP_ASSERT(0 <= index && index < parts && quantum >= 1, "index={} parts={} quantum={}", index,
            parts, quantum);
  const std::int64_t quanta = quantum == 1 ? extent : (extent + quantum - 1) / quantum;
  const std::int64_t each = quanta / parts, longer = quanta % parts;
  const auto begin_of = [&](std::int64_t i) {
    return std::min(extent, quantum * (i * each + std::min(i, longer)));
  };
  return {begin_of(index), begin_of(index + 1)};
}

std::int64_t block_of(std::int64_t extent, std::int64_t parts, std::int64_t element,
                      std::int64_t quantum) {
  SP_ASSERT(0 <= element && element < extent, "element={} extent={}", element, extent);
  const std::int64_t quanta = (extent + quantum - 1) / quantum, q = element / quantum;
  const std::int64_t each = quanta / parts, longer = quanta % parts;
  const std::int64_t in_longer = longer * (each + 1);
  return q < in_longer ? q / (each + 1) : longer + (q - in_longer) / each;
}

Shape Region::shape() const {
  Shape shape;
  for (const Axis axis : all_axes) shape[axis] = (*this)[axis].size();
  return shape;
}

bool Region::contains(const Region& other) const {
  if (other.empty()) return true;
  return std::all_of(all_axes.begin(), all_axes.end(),
                     [&](Axis axis) { return (*this)[axis].contains(other[axis]); });
}

Region whole(const Shape& shape) {
  Region region;
  for (const Axis axis : all_axes) region[axis] = {0, shape[axis]};
  return region;
}

Region intersect(const Region& a, const Region& b) {
  Region both;
  for (const Axis axis : all_axes) {
    both[axis] = intersect(a[axis], b[axis]);
    if (both[axis].empty()) return Region{};
  }
  return both;
}

Region moved(const Region& region, const std::array<std::int64_t, axis_count>& by) {
  Region there = region;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    there.interval[axis].begin += by[axis];
    there.interval[axis].end += by[axis];
  }
  return there;
}

namespace {

constexpr std::array<Axis, axis_count> memory_order{Axis::N, Axis::D, Axis::H, Axis::W, Axis::C};

}  // namespace

bool is_contiguous(const Region& part, const Region& all) {
  bool single = true;  // whether the part has one element along each of the outer axes
  for (const Axis axis : memory_order) {
    if (!single && part[axis] != all[axis]) return false;
    single = single && part[axis].size() == 1;
  }
  return true;
}

std::int64_t elements_before(const Region& part, const Region& all) {
  std::int64_t before = 0;
  for (const Axis axis : memory_order)
    before = before * all[axis].size() + part[axis].begin - all[axis].begin;
  return before;
}

std::string to_string(const Region& region) {
  std::string text;
  for (const Axis axis : all_axes)
    text += fmt::format("{}[{},{})", text.empty() ? "" : " ", region[axis].begin, region[axis].end);
  return text;
}

}  // namespace stratplan
