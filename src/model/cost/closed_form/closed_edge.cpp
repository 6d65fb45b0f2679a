#include "model/cost/closed_form/closed_edge.hpp"

#include <algorithm>
#include <optional>

#include "model/base/assert.hpp"
#include "model/base/index.hpp"
#include "model/base/sorted_range.hpp"
#include "model/cost/closed_form/fixed_end.hpp"

namespace stratplan {
namespace {

/// The numbers of parts that occur along an axis, ascending.
std::vector<int> parts_of(const std::vector<EndSpace::Kind>& kinds, std::size_t axis) {
  std::vector<int> parts;
  for (const EndSpace::Kind& kind : kinds) parts.push_back(kind.parts[axis]);
  make_sorted_set(parts);
  return parts;
}

/// The place of an end's number of parts among those that occur; nothing if it does not occur.
std::optional<std::size_t> place_in(const std::vector<int>& parts, int of_end) {
  const auto found = std::ranges::lower_bound(parts, of_end);
  if (found == parts.end() || *found != of_end) return {};
  return found - parts.begin();
}

std::vector<std::size_t> places(const std::vector<EndSpace::Kind>& kinds, std::size_t axis,
                                const std::vector<int>& parts) {
  std::vector<std::size_t> found;
  for (const EndSpace::Kind& kind : kinds) found.push_back(*place_in(parts, kind.parts[axis]));
  return found;
}

/// Returns an upper bound of the common part of both ends along an axis whose blocks are not plain.
/// `meeting` is the common part that blocks of equal length would have. `with_halo`: the halo of a
/// share counts as near.
Meeting among_blocks(Meeting meeting, const AxisReading::Along& blocks, bool with_halo) {
  const auto bound = [&](const AxisReading::Near& near, Reach reach) -> const auto& {
    return near.bounds[static_cast<std::size_t>(reach) + (reach == Reach::Share && with_halo)];
  };
  const auto &home = bound(blocks.forward, meeting.home_reach),
             &wanted = bound(blocks.backward, meeting.wanted_reach);
  meeting.common = 1;
  meeting.near_home = std::min(1.0F, std::max(meeting.near_home * home.times, home.floor));
  meeting.near_homes = meeting.near_homes * home.counted + home.more;
  meeting.near_wanted = std::min(1.0F, std::max(meeting.near_wanted * wanted.times, wanted.floor));
  meeting.near_readers = meeting.near_readers * wanted.counted + wanted.more;
  return meeting;
}

/// Whether witnesses need overlaps() of the blocks. Plain blocks have equal counts.
bool counts_overlaps(const AxisReading::Along& along) {
  return !along.plain && along.located == AxisReading::Along::Located::Exactly;
}

}  // namespace

ClosedEdge::ClosedEdge(const EndSpace& space, const EdgeRates& rates,
                       std::vector<AxisReading> readings, Side home, Side wanted, double passes)
    : space_(space),
      rates_(rates),
      home_(std::move(home)),
      wanted_(std::move(wanted)),
      passes_(passes) {
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    std::vector<int> homes = parts_of(home_.kinds, axis),
                     wanted_parts = parts_of(wanted_.kinds, axis);
    if (homes.back() == 1 && wanted_parts.back() == 1) {
      whole_sizes_ *= readings[axis].along(1, 1).sizes;
      continue;
    }
    Table& table = tables_.emplace_back();
    table.axis = axis;
    table.homes = std::move(homes);
    table.wanted = std::move(wanted_parts);
    table.home_line = places(home_.kinds, axis, table.homes);
    for (const std::size_t line : table.home_line)
      table.home_row.push_back(line * table.wanted.size());
    table.wanted_column = places(wanted_.kinds, axis, table.wanted);
    for (const int of_home : table.homes) {
      for (const int of_wanted : table.wanted) {
        table.along.push_back(readings[axis].along(of_home, of_wanted));
        table.sizes.push_back(table.along.back().sizes);
        table.nesting.emplace_back(of_home, of_wanted);
        table.plain = table.plain && table.along.back().plain;
      }
    }
    for (const AxisReading::Along& along : table.along)
      table.unknown_lanes.push_back(lanes_of(met_along(unknown, along)));
    if (table.plain) continue;
    ++cut_;
    meet_all(table, readings[axis]);
    for (const Table::Met& met : table.met) table.lanes.push_back(lanes_of(met));
    for (const int parts : table.homes)
      table.home_places.push_back(readings[axis].home_places(parts));
    for (const int parts : table.wanted)
      table.wanted_places.push_back(readings[axis].wanted_places(parts));
    table.reads.resize(table.along.size());
    table.writes.resize(table.along.size());
    for (std::size_t pair = 0; pair < table.along.size(); ++pair) {
      if (!counts_overlaps(table.along[pair])) continue;
      const auto& home_places = table.home_places[pair / table.wanted.size()];
      const auto& wanted_places = table.wanted_places[pair % table.wanted.size()];
      table.reads[pair] = overlaps(wanted_places, home_places);
      table.writes[pair] = overlaps(home_places, wanted_places);
    }
  }
  for (Table& table : tables_) find_best(table);
}

void ClosedEdge::meet_all(Table& table, AxisReading& reading) const {
  const int ways = space_.ways(table.axis);
  std::vector<std::optional<std::size_t>> lines, columns;
  for (int digits = 0; digits < ways; ++digits) {
    lines.push_back(place_in(table.homes, space_.parts(table.axis, digits)));
    columns.push_back(place_in(table.wanted, space_.parts(table.axis, digits)));
  }
  const std::size_t meetings = space_.meetings().size();
  std::vector<int> known(table.along.size() * meetings, -1);
  table.by_home.resize(at(ways) * at(ways));
  table.by_wanted.resize(at(ways) * at(ways));
  for (int home = 0; home < ways; ++home) {
    const std::uint16_t* const row = space_.met_by_home(table.axis, home);
    for (int reader = 0; lines[at(home)] && reader < ways; ++reader) {
      if (!columns[at(reader)]) continue;
      const std::size_t pair = *lines[at(home)] * table.wanted.size() + *columns[at(reader)];
      if (home == reader && table.along[pair].known && !table.along[pair].plain) {
        set_alike(table, reading, home, pair);
        continue;
      }
      int& number = known[pair * meetings + row[reader]];
      if (number < 0) {
        number = static_cast<int>(table.met.size());
        table.met.push_back(met_along(space_.meetings()[row[reader]], table.along[pair]));
        SP_ASSERT(table.met.size() < 65536, "{} entries", table.met.size());
      }
      table.by_home[at(home) * at(ways) + at(reader)] =
          table.by_wanted[at(reader) * at(ways) + at(home)] = static_cast<std::uint16_t>(number);
    }
  }
}

/// Both ends have these digits, and blocks that are not equally long.
void ClosedEdge::set_alike(Table& table, AxisReading& reading, int digits, std::size_t pair) const {
  const Meeting& meeting = space_.meetings()[space_.met_by_home(table.axis, digits)[digits]];
  Table::Met met = met_along(meeting, table.along[pair]);
  if (meeting.common == 1) {
    met.alike =
        reading.alike(space_.parts(table.axis, digits), space_.near_run(table.axis, digits));
    met.meeting.near_home = forward_of(met.alike.near);
    met.meeting.near_homes = forward_of(met.alike.near_blocks);
    met.meeting.near_wanted = backward_of(met.alike.near);
    met.meeting.near_readers = backward_of(met.alike.near_blocks);
  }
  const auto ways = at(space_.ways(table.axis));
  table.by_home[at(digits) * ways + at(digits)] = table.by_wanted[at(digits) * ways + at(digits)] =
      static_cast<std::uint16_t>(table.met.size());
  table.met.push_back(met);
  SP_ASSERT(table.met.size() < 65536, "{} entries", table.met.size());
}

bool ClosedEdge::splits_alike(const EndSpace::End& a, const EndSpace::End& b) const {
  return std::ranges::any_of(tables_, [&](const Table& table) {
    return !table.plain && a.digits[table.axis] == b.digits[table.axis];
  });
}

ClosedEdge::Table::Met ClosedEdge::met_along(const Meeting& meeting,
                                             const AxisReading::Along& blocks) {
  if (blocks.plain) return {meeting};
  const bool apart = blocks.known && meeting.common == 0;
  return {among_blocks(blocks.known ? meeting : unknown, blocks, apart), apart,
          blocks.forward.own_apart, blocks.backward.own_apart};
}

/// `meeting`: an upper bound over several ends, so that no single end has more in common.
CommonLanes ClosedEdge::best_along(Meeting meeting, const AxisReading::Along& blocks) const {
  if (!meeting.matched || (!blocks.plain && (!blocks.known || cut_ > most_apart)))
    meeting = unknown;
  if (blocks.plain) return CommonLanes(meeting);
  CommonLanes lanes(among_blocks(meeting, blocks, true));
  if (meeting.common == 0)
    lanes.own *= CommonLanes::Lanes{blocks.forward.own_apart, blocks.backward.own_apart, 1, 1};
  return lanes;
}

void ClosedEdge::find_best(Table& table) const {
  const auto &homes = table.homes, &wanted = table.wanted;
  const std::size_t axis = table.axis;
  table.best_of_home.resize(at(space_.ways(axis)) * wanted.size());
  table.best_of_wanted.resize(at(space_.ways(axis)) * homes.size());
  const auto best = [&](const std::uint16_t* row, int parts, std::size_t line, std::size_t column) {
    return best_along(space_.meetings()[row[space_.place_of_parts(axis, parts)]],
                      table.along[line * wanted.size() + column]);
  };
  for (int digits = 0; digits < space_.ways(axis); ++digits) {
    if (const auto line = place_in(homes, space_.parts(axis, digits)))
      for (std::size_t column = 0; column < wanted.size(); ++column)
        table.best_of_home[at(digits) * wanted.size() + column] =
            best(space_.best_by_home(axis, digits), wanted[column], *line, column);
    if (const auto column = place_in(wanted, space_.parts(axis, digits)))
      for (std::size_t line = 0; line < homes.size(); ++line)
        table.best_of_wanted[at(digits) * homes.size() + line] =
            best(space_.best_by_wanted(axis, digits), homes[line], line, *column);
  }
}

CommonLanes ClosedEdge::lanes_of(const Table::Met& met) {
  CommonLanes lanes(met.meeting);
  if (met.apart) lanes.own *= CommonLanes::Lanes{met.own_forward, met.own_backward, 1, 2};
  return lanes;
}

double ClosedEdge::witnessed(const EndSpace::End& home, const EndSpace::End& wanted,
                             double enough) const {
  if (cut_ == 0) return 0;
  std::array<AxisBlocks, axis_count> axes;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    const std::size_t row = table.home_row[home.kind], column = table.wanted_column[wanted.kind];
    const AxisReading::Along& along = table.along[row + column];
    if (along.located == AxisReading::Along::Located::Nowhere) return 0;
    AxisBlocks& blocks = axes[i];
    if (!along.plain) {
      blocks.home = table.home_places[row / table.wanted_places.size()];
      blocks.wanted = table.wanted_places[column];
    }
    blocks.exact = along.located == AxisReading::Along::Located::Exactly;
    blocks.sizes = along.sizes;
    blocks.nesting = table.nesting[row + column];
    blocks.of_home = space_.witnessed(table.axis, home.digits[table.axis]);
    blocks.of_wanted = space_.witnessed(table.axis, wanted.digits[table.axis]);
    if (counts_overlaps(along)) {
      blocks.reads = table.reads[row + column];
      blocks.writes = table.writes[row + column];
    }
  }
  return slowest_witness(space_.witnesses(),
                         {std::span(axes).first(tables_.size()), whole_sizes_, home.distinct,
                          wanted.distinct, static_cast<float>(wanted_.kinds[wanted.kind].terms),
                          static_cast<float>(wanted.terms_inside)},
                         rates_, static_cast<float>(enough / passes_)) *
         passes_;
}

double ClosedEdge::cost(int home_candidate, int wanted_candidate) const {
  const EndSpace::End& home = home_.ends[at(home_.end_of[at(home_candidate)])];
  const EndSpace::End& wanted = wanted_.ends[at(wanted_.end_of[at(wanted_candidate)])];
  return std::max(Fixed(*this, true, home).seconds(prices(home.kind, wanted.kind), wanted),
                  witnessed(home, wanted, infinity));
}

}  // namespace stratplan
