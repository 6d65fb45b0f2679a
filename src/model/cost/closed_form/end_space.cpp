#include "model/cost/closed_form/end_space.hpp"

#include <algorithm>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"

namespace stratplan {

EndSpace::EndSpace(const GridSpace& space)
    : space_(space), witnesses_(space.ranks(), space.innermost()) {
  for (std::size_t axis = 0; axis < axis_count; ++axis) number_of(axis, {});
}

int EndSpace::number_of(std::size_t axis, AxisDigits digits) {
  Pool& pool = pools_[axis];
  const auto [found, fresh] = pool.known.try_emplace(digits, static_cast<int>(pool.digits.size()));
  if (fresh) pool.digits.push_back(std::move(digits));
  return found->second;
}

/// Returns the end on one grid, and its kind. End::kind is not set yet.
std::pair<EndSpace::Kind, EndSpace::End> EndSpace::end_on(std::size_t grid,
                                                          const TensorSplit& split) {
  Kind kind;
  End end;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    if (split.by[axis].empty()) continue;
    AxisDigits along = digits_along(space_.digits(grid), split.by[axis], space_.innermost());
    kind.parts[axis] = along.parts();
    end.digits[axis] = static_cast<std::uint16_t>(number_of(axis, std::move(along)));
  }
  for (const GridDigit& digit : space_.digits(grid)) {
    if (!split.gathered.contains(digit.dim)) continue;
    kind.terms *= digit.parts;
    if (digit.stride < space_.innermost())
      end.terms_inside = static_cast<std::uint16_t>(end.terms_inside * digit.parts);
  }
  return {kind, end};
}

const EndSpace::Ends& EndSpace::ends(const SplitByOutputLayout& splits) {
  for (const auto& [known, ends] : ends_)
    if (known == splits) return *ends;
  Ends& made = *ends_.emplace_back(splits, std::make_unique<Ends>()).second;
  std::map<Kind, std::uint16_t> kinds;
  std::map<End, int> known;
  for (std::size_t output_layout = 0; output_layout < splits.size(); ++output_layout) {
    std::vector<int>& of_grid = made.of_grid[output_layout];
    if (output_layout > 0 && splits[output_layout] == splits[0]) of_grid = made.of_grid[0];
    for (std::size_t grid = of_grid.size(); grid < space_.size(); ++grid) {
      auto [kind, end] = end_on(grid, splits[output_layout]);
      const auto [of_kind, new_kind] =
          kinds.try_emplace(kind, static_cast<std::uint16_t>(made.kinds.size()));
      if (new_kind) made.kinds.push_back(kind);
      end.kind = of_kind->second;
      const auto [place, fresh] = known.try_emplace(end, static_cast<int>(made.ends.size()));
      if (fresh) made.ends.push_back(end);
      of_grid.push_back(place->second);
    }
  }
  return made;
}

std::uint16_t EndSpace::number_of(const Meeting& meeting) {
  const auto [found, fresh] =
      number_of_meeting_.try_emplace(meeting, static_cast<std::uint16_t>(meetings_.size()));
  if (fresh) meetings_.push_back(meeting);
  SP_ASSERT(meetings_.size() < 65536, "{} entries", meetings_.size());
  return found->second;
}

void EndSpace::meet_all() {
  for (Pool& pool : pools_) {
    const std::size_t ways = pool.digits.size();
    std::vector<std::map<Meeting, std::vector<std::size_t>>> rows(ways);
    in_parallel(ways, [&](std::size_t home) {
      for (std::size_t wanted = 0; wanted < ways; ++wanted)
        rows[home][meet(pool.digits[home], pool.digits[wanted], space_.innermost(), space_.ranks())]
            .push_back(wanted);
    });
    pool.by_home.resize(ways * ways);
    pool.by_wanted.resize(ways * ways);
    for (std::size_t home = 0; home < ways; ++home) {
      for (const auto& [meeting, places] : rows[home]) {
        const std::uint16_t number = number_of(meeting);
        for (const std::size_t wanted : places)
          pool.by_home[home * ways + wanted] = pool.by_wanted[wanted * ways + home] = number;
      }
    }
    find_best(pool);
    for (const AxisDigits& digits : pool.digits)
      pool.witnessed.push_back(witnesses_.blocks(digits));
  }
  for (const Meeting& meeting : meetings_) lanes_.emplace_back(meeting);
  for (const auto& [splits, ends] : ends_)
    for (End& end : ends->ends) end.distinct = distinct(end);
}

/// Returns End::distinct. Digits inside the innermost level take the same values in each group.
std::uint16_t EndSpace::distinct(const End& end) const {
  unsigned bits = 0;
  for (int mate = 0; witnesses_.count() > 0 && mate < witnesses_.near(); ++mate) {
    const auto same = [&](int earlier) {
      for (std::size_t axis = 0; axis < axis_count; ++axis) {
        const std::uint16_t* blocks = witnessed(axis, end.digits[axis]);
        if (blocks[mate] != blocks[earlier]) return false;
      }
      return true;
    };
    bool first = true;
    for (int earlier = 0; first && earlier < mate; ++earlier) first = !same(earlier);
    if (first) bits |= 1U << static_cast<unsigned>(mate);
  }
  return static_cast<std::uint16_t>(bits);
}

void EndSpace::find_best(Pool& pool) {
  std::set<int> parts;
  for (const AxisDigits& digits : pool.digits) parts.insert(digits.parts());
  pool.parts.assign(parts.begin(), parts.end());
  std::vector<std::size_t> place;
  for (const AxisDigits& digits : pool.digits)
    place.push_back(static_cast<std::size_t>(std::ranges::lower_bound(pool.parts, digits.parts()) -
                                             pool.parts.begin()));
  const auto best_of = [&](const std::vector<std::uint16_t>& table,
                           std::vector<std::uint16_t>& best) {
    for (std::size_t one = 0; one < pool.digits.size(); ++one) {
      std::vector<Meeting> most(pool.parts.size(), strangers);
      for (std::size_t other = 0; other < pool.digits.size(); ++other)
        most[place[other]].raise_to(meetings_[table[one * pool.digits.size() + other]]);
      for (const Meeting& meeting : most) best.push_back(number_of(meeting));
    }
  };
  best_of(pool.by_home, pool.best_by_home);
  best_of(pool.by_wanted, pool.best_by_wanted);
}

int EndSpace::near_run(std::size_t axis, int digits) const {
  int run = 1;
  for (const AxisDigits::Digit& digit :
       pools_[axis].digits[static_cast<std::size_t>(digits)].digits)
    if (digit.stride < space_.innermost()) run *= digit.parts;
  return run;
}

std::size_t EndSpace::place_of_parts(std::size_t axis, int parts) const {
  const std::vector<int>& known = pools_[axis].parts;
  return static_cast<std::size_t>(std::ranges::lower_bound(known, parts) - known.begin());
}

}  // namespace stratplan
