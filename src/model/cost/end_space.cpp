#include "model/cost/end_space.hpp"

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"

namespace stratplan {

EndSpace::EndSpace(const GridSpace& space) : space_(space) {
  for (std::size_t axis = 0; axis < axis_count; ++axis) number_of(axis, {});
}

int EndSpace::number_of(std::size_t axis, AxisDigits digits) {
  Pool& pool = pools_[axis];
  const auto [found, fresh] = pool.known.try_emplace(digits, static_cast<int>(pool.digits.size()));
  if (fresh) pool.digits.push_back(std::move(digits));
  return found->second;
}

const EndSpace::Ends& EndSpace::ends(const TensorSplit& split) {
  for (const auto& [known, ends] : ends_)
    if (known == split) return *ends;
  Ends& made = *ends_.emplace_back(split, std::make_unique<Ends>()).second;
  std::map<Kind, std::uint16_t> kinds;
  std::map<End, int> known;
  for (std::size_t grid = 0; grid < space_.size(); ++grid) {
    End end;
    Kind kind;
    for (std::size_t axis = 0; axis < axis_count; ++axis) {
      if (split.by[axis].empty()) continue;
      AxisDigits along = digits_along(space_.digits(grid), split.by[axis], space_.innermost());
      kind.parts[axis] = along.parts();
      end.digits[axis] = static_cast<std::uint16_t>(number_of(axis, std::move(along)));
    }
    for (const GridDigit& digit : space_.digits(grid)) {
      if (!split.gathered.contains(digit.dim)) continue;
      kind.terms *= digit.parts;
      if (digit.stride < space_.innermost()) end.terms_inside = static_cast<std::uint16_t>(end.terms_inside * digit.parts);
    }
    const auto [of_kind, new_kind] = kinds.try_emplace(kind, static_cast<std::uint16_t>(made.kinds.size()));
    if (new_kind) made.kinds.push_back(kind);
    end.kind = of_kind->second;
    const auto [place, fresh] = known.try_emplace(end, static_cast<int>(made.ends.size()));
    if (fresh) made.ends.push_back(end);
    made.of_grid.push_back(place->second);
  }
  return made;
}

void EndSpace::meet_all() {
  std::map<Meeting, std::uint16_t> known;
  for (Pool& pool : pools_) {
    const std::size_t ways = pool.digits.size();
    std::vector<std::map<Meeting, std::vector<std::size_t>>> rows(ways);
    in_parallel(ways, [&](std::size_t home) {
      for (std::size_t wanted = 0; wanted < ways; ++wanted)
        rows[home][meet(pool.digits[home], pool.digits[wanted], space_.innermost())].push_back(wanted);
    });
    pool.by_home.resize(ways * ways);
    pool.by_wanted.resize(ways * ways);
    for (std::size_t home = 0; home < ways; ++home) {
      for (const auto& [meeting, places] : rows[home]) {
        const auto [found, fresh] = known.try_emplace(meeting, static_cast<std::uint16_t>(meetings_.size()));
        if (fresh) meetings_.push_back(meeting);
        SP_ASSERT(meetings_.size() < 65536);
        for (const std::size_t wanted : places) pool.by_home[home * ways + wanted] = pool.by_wanted[wanted * ways + home] = found->second;
      }
    }
  }
}

}  // namespace stratplan
