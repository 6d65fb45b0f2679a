#include "model/cost/closed_form/group_shapes.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

GroupShapes::GroupShapes(const GridSpace& space, Topology placement, std::span<const DimSet> sets)
    : space_(space), placement_(std::move(placement)) {
  for (const DimSet dims : sets) known_.emplace(dims, lay_out(dims));
}

const GroupShapes::Along& GroupShapes::along(DimSet dims) const {
  const auto known = known_.find(dims);
  SP_ASSERT(known != known_.end(),
            "the dimensions are none of the {} sets given to the constructor", known_.size());
  return known->second;
}

GroupShapes::Along GroupShapes::lay_out(DimSet dims) const {
  Along along;
  std::map<GroupShape, std::uint16_t> numbers;
  for (std::size_t grid = 0; grid < space_.size(); ++grid) {
    const auto [number, fresh] = numbers.try_emplace(
        shape(grid, dims, space_.ranks()), static_cast<std::uint16_t>(along.shapes.size()));
    if (fresh) along.shapes.push_back(number->first);
    SP_ASSERT(along.shapes.size() < 65536, "{} shapes", along.shapes.size());
    along.of_grid.push_back(number->second);
  }
  return along;
}

/// Each digit covers the range of rank distances from its stride (`low`) to its stride times its
/// parts (`high`). Each level covers the range from the size of the groups inside it (`inner`) to
/// the size of its own groups (`outer`). The common range, as a ratio of its limits, is the number
/// of the digit's members at that level.
GroupShape GroupShapes::shape(std::size_t grid, DimSet dims, std::int64_t samples) const {
  GroupShape shape;
  const auto digits = space_.digits(grid);
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (!dims.contains(digit->dim)) continue;
    std::int64_t parts = digit->parts;
    if (digit->dim == Dim::N) {
      parts = std::min(parts, samples);
      samples = std::max<std::int64_t>(1, (samples + digit->parts - 1) / digit->parts);
    }
    const std::int64_t low = digit->stride, high = low * parts;
    std::int64_t inner = 1;
    for (std::size_t level = placement_.size(); level-- > 0;) {
      const std::int64_t outer = inner * placement_[level];
      const std::int64_t end = std::min(high, outer), begin = std::max(low, inner);
      if (end > begin) shape.members[level] *= static_cast<int>(end / begin);
      inner = outer;
    }
  }
  return shape;
}

}  // namespace stratplan
