#include "model/partition/program/group_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

std::string collective_key(Collective op, DataType type, int group_size) {
  return fmt::format("{} {} {}", name_of(op), name_of(type), group_size);
}

std::string collective_key(Collective op, DataType type, const GroupShape& shape,
                           std::size_t levels) {
  std::size_t level = 0;
  while (level + 1 < levels && shape.members[level] == 1) ++level;
  const auto first = shape.members.begin();
  return fmt::format(
      "{} {} {}", name_of(op), name_of(type),
      fmt::join(first + static_cast<std::ptrdiff_t>(level),
                first + static_cast<std::ptrdiff_t>(std::max(levels, level + 1)), "x"));
}

GroupShape shape_of(const std::vector<int>& group, const Topology& placement) {
  SP_ASSERT(!group.empty() && placement.size() <= GroupShape::most_levels, "members={} levels={}",
            group.size(), placement.size());
  GroupShape shape;
  int within = 1, counted = 1;
  for (std::size_t level = placement.size(); level-- > 0;) {
    within *= placement[level];
    const auto together = std::ranges::count_if(
        group, [&](int member) { return member / within == group.front() / within; });
    shape.members[level] = static_cast<int>(together) / counted;
    counted *= shape.members[level];
  }
  return shape;
}

}  // namespace stratplan
