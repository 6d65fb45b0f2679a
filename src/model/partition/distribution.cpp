#include "model/partition/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

namespace {

/// Returns the interval along `axis` of the block whose index along each dimension is `index(dim)`.
template <class Index>
Interval owned_by(const Distribution& tensor, Axis axis, const Index& index) {
  Interval interval{0, tensor.shape[axis]};
  for (const Dim dim : tensor.split(axis).by) {
    const Interval inner =
        block(interval.size(), tensor.grid.parts(dim), index(dim), tensor.split(axis).quantum);
    interval = {interval.begin + inner.begin, interval.begin + inner.end};
  }
  return interval;
}

}  // namespace

Interval Distribution::owned(Axis axis, int rank) const {
  return owned_by(*this, axis, [&](Dim dim) { return grid.index(dim, rank); });
}

Interval Distribution::owned(Axis axis, const std::array<int, dim_count>& indices) const {
  return owned_by(*this, axis, [&](Dim dim) { return indices[static_cast<std::size_t>(dim)]; });
}

Region Distribution::owned(int rank) const {
  Region region;
  for (const Axis axis : all_axes) region[axis] = owned(axis, rank);
  return region;
}

Distribution Distribution::dual() const {
  Distribution gradient = *this;
  for (Role& role : gradient.roles) {
    if (role == Role::Gathered)
      role = Role::Partial;
    else if (role == Role::Partial)
      role = Role::Gathered;
  }
  return gradient;
}

DimList Distribution::dims_with(Role wanted) const {
  DimList dims;
  for (const Dim dim : all_dims)
    if (role(dim) == wanted && grid.parts(dim) > 1) dims.push_back(dim);
  return dims;
}

std::string Distribution::text() const {
  std::string text;
  for (const Axis axis : all_axes) {
    std::string by;
    for (const Dim dim : split(axis).by)
      if (grid.parts(dim) > 1)
        by += fmt::format("{}{}{}", by.empty() ? "" : "x",
                          dim_letters[static_cast<std::size_t>(dim)], grid.parts(dim));
    if (!by.empty())
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ",
                          axis_names[static_cast<std::size_t>(axis)], by);
  }
  std::string rest;
  for (const auto& [role, word] : {std::pair{Role::Gathered, "gathered"},
                                   {Role::Partial, "partial"},
                                   {Role::Redundant, "redundant"}})
    for (const Dim dim : dims_with(role))
      rest += fmt::format("{}{} {}", rest.empty() ? "" : ", ", word,
                          dim_letters[static_cast<std::size_t>(dim)]);
  if (text.empty()) text = "whole";
  return rest.empty() ? text : text + " | " + rest;
}

Interval Needed::unclipped(Axis axis, Interval positions) const {
  if (axis == Axis::C) return {positions.begin - first_channel, positions.end - first_channel};
  if (!is_spatial(axis)) return positions;
  const auto i = static_cast<std::size_t>(spatial_index(axis));
  if (transposed) return reading_unclipped(windows[i], positions);
  if (scales[i].is_identity() && iteration.shape[axis] == tensor[axis])
    return needed_unclipped(windows[i], positions);
  if (windows[i] != Window{}) return needed_unclipped(windows[i], positions);
  return needed(scales[i], positions, tensor[axis]);
}

Interval Needed::ascending(Axis axis, Interval positions) const {
  if (!mirrors(axis)) return intersect(unclipped(axis, positions), {0, tensor[axis]});
  Scale scale = scales[static_cast<std::size_t>(spatial_index(axis))];
  scale.ends = Ends::Clamp;
  return needed(scale, positions, tensor[axis]);
}

Interval Needed::region(Axis axis, Interval positions) const {
  const Interval read = unclipped(axis, positions);
  return wraps(axis) ? read : intersect(read, {0, tensor[axis]});
}

Region Needed::region(int rank) const {
  Region region_of_rank;
  for (const Axis axis : all_axes) region_of_rank[axis] = region(axis, rank);
  return region_of_rank;
}

}  // namespace stratplan
