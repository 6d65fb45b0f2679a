#include "model/cost/closed_form/closed_edge.hpp"

#include <algorithm>
#include <limits>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"

namespace stratplan {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Index>
std::size_t at(Index index) {
  return static_cast<std::size_t>(index);
}

/// The numbers of parts that occur along an axis, ascending.
std::vector<int> parts_of(const std::vector<EndSpace::Kind>& kinds, std::size_t axis) {
  std::vector<int> parts;
  for (const EndSpace::Kind& kind : kinds) parts.push_back(kind.parts[axis]);
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

std::vector<std::size_t> places(const std::vector<EndSpace::Kind>& kinds, std::size_t axis,
                                const std::vector<int>& parts) {
  std::vector<std::size_t> found;
  for (const EndSpace::Kind& kind : kinds)
    found.push_back(at(std::ranges::lower_bound(parts, kind.parts[axis]) - parts.begin()));
  return found;
}

/// By kind, the number of ranks that have the same block.
std::vector<float> copies(const std::vector<EndSpace::Kind>& kinds, int ranks) {
  std::vector<float> equal;
  for (const EndSpace::Kind& kind : kinds) {
    int blocks = 1;
    for (const int parts : kind.parts) blocks *= parts;
    equal.push_back(static_cast<float>(ranks / blocks));
  }
  return equal;
}

/// Whether witnesses need overlaps() of the blocks. Plain blocks have equal counts.
bool counts_overlaps(const AxisReading::Along& along) {
  return !along.plain && along.located == AxisReading::Along::Located::Exactly;
}

}  // namespace

ClosedEdge::ClosedEdge(const EndSpace& space, const EdgeRates& rates, const GroupRates& groups,
                       std::vector<AxisReading> readings, Side home, Side wanted, double passes)
    : space_(space),
      rates_(rates),
      groups_(groups),
      home_(std::move(home)),
      wanted_(std::move(wanted)),
      passes_(passes),
      home_copies_(copies(home_.kinds, rates.ranks)),
      wanted_copies_(copies(wanted_.kinds, rates.ranks)) {
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    const std::vector<int> homes = parts_of(home_.kinds, axis),
                           wanted_parts = parts_of(wanted_.kinds, axis);
    if (homes.back() == 1 && wanted_parts.back() == 1) {
      whole_sizes_ *= readings[axis].along(1, 1).sizes;
      continue;
    }
    Table& table = tables_.emplace_back();
    table.axis = axis;
    for (const std::size_t place : places(home_.kinds, axis, homes))
      table.home_row.push_back(place * wanted_parts.size());
    table.wanted_column = places(wanted_.kinds, axis, wanted_parts);
    for (const EndSpace::Kind& kind : home_.kinds)
      table.home_parts.push_back(space.place_of_parts(axis, kind.parts[axis]));
    for (const EndSpace::Kind& kind : wanted_.kinds)
      table.wanted_parts.push_back(space.place_of_parts(axis, kind.parts[axis]));
    for (const int of_home : homes) {
      for (const int of_wanted : wanted_parts) {
        table.along.push_back(readings[axis].along(of_home, of_wanted));
        table.sizes.push_back(table.along.back().sizes);
        table.plain = table.plain && table.along.back().plain;
      }
    }
    if (table.plain) continue;
    ++cut_;
    meet_all(table, readings[axis], homes, wanted_parts);
    for (const int parts : homes) table.home_places.push_back(readings[axis].home_places(parts));
    for (const int parts : wanted_parts)
      table.wanted_places.push_back(readings[axis].wanted_places(parts));
    table.reads.resize(table.along.size());
    table.writes.resize(table.along.size());
    for (std::size_t pair = 0; pair < table.along.size(); ++pair) {
      if (!counts_overlaps(table.along[pair])) continue;
      const auto& home_places = table.home_places[pair / wanted_parts.size()];
      const auto& wanted_places = table.wanted_places[pair % wanted_parts.size()];
      table.reads[pair] = overlaps(wanted_places, home_places);
      table.writes[pair] = overlaps(home_places, wanted_places);
    }
  }
}

void ClosedEdge::meet_all(Table& table, AxisReading& reading, const std::vector<int>& homes,
                          const std::vector<int>& wanted) const {
  const int ways = space_.ways(table.axis);
  const auto place = [&](const std::vector<int>& parts, int digits) {
    const auto found = std::ranges::lower_bound(parts, space_.parts(table.axis, digits));
    const bool occurs = found != parts.end() && *found == space_.parts(table.axis, digits);
    return occurs ? static_cast<int>(found - parts.begin()) : -1;
  };
  std::vector<int> rows, columns;
  for (int digits = 0; digits < ways; ++digits) {
    rows.push_back(place(homes, digits));
    columns.push_back(place(wanted, digits));
  }
  const std::size_t meetings = space_.meetings().size();
  std::vector<int> known(table.along.size() * meetings, -1);
  table.by_home.resize(at(ways) * at(ways));
  table.by_wanted.resize(at(ways) * at(ways));
  for (int home = 0; home < ways; ++home) {
    const std::uint16_t* const row = space_.met_by_home(table.axis, home);
    for (int reader = 0; rows[at(home)] >= 0 && reader < ways; ++reader) {
      if (columns[at(reader)] < 0) continue;
      const std::size_t pair = at(rows[at(home)]) * wanted.size() + at(columns[at(reader)]);
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
    met.meeting.near_home = met.alike.forward.near;
    met.meeting.near_homes = met.alike.forward.near_blocks;
    met.meeting.near_wanted = met.alike.backward.near;
    met.meeting.near_readers = met.alike.backward.near_blocks;
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
  return {Choice(1, false).along(meeting, blocks), blocks.forward.own_apart,
          blocks.backward.own_apart, apart};
}

/// Always inlined, so that the compiler omits those members of the result that a caller ignores.
[[gnu::always_inline]] inline EdgePrices ClosedEdge::prices(int home_kind, int wanted_kind) const {
  AxisReading::Sizes products = whole_sizes_;
  for (const Table& table : tables_)
    products *= table.sizes[table.home_row[at(home_kind)] + table.wanted_column[at(wanted_kind)]];
  return EdgePrices(rates_, groups_, products,
                    {static_cast<float>(wanted_.kinds[at(wanted_kind)].terms),
                     home_copies_[at(home_kind)], wanted_copies_[at(wanted_kind)]});
}

/// Prices the pairs of one fixed end and any end of the edge's other side.
class ClosedEdge::Fixed {
 public:
  Fixed(const ClosedEdge& edge, bool home, const EndSpace::End& end)
      : edge_(edge),
        other_kinds_(home ? edge.wanted_.kinds : edge.home_.kinds),
        meetings_(edge.space_.meetings().data()),
        end_(end),
        home_(home) {
    for (std::size_t i = 0; i < edge.tables_.size(); ++i) {
      const Table& table = edge.tables_[i];
      const std::size_t axis = table.axis;
      const int digits = end.digits[axis];
      rows_[i] = !table.plain ? (home ? table.by_home : table.by_wanted).data() +
                                    at(digits) * at(edge.space_.ways(axis))
                 : home ? edge.space_.met_by_home(axis, digits)
                        : edge.space_.met_by_wanted(axis, digits);
      best_rows_[i] =
          home ? edge.space_.best_by_home(axis, digits) : edge.space_.best_by_wanted(axis, digits);
    }
  }

  [[gnu::always_inline]] double seconds(const EdgePrices& prices,
                                        const EndSpace::End& other) const {
    unsigned alone = 0;  // tables along which a rank was looked for
    double best = seconds_if_matched(prices, other, alone);
    if (alone == 0) [[likely]]
      return best;
    for (std::size_t i = 0; alone > 0; ++i, alone >>= 1U)
      if ((alone & 1U) != 0) best = std::max(best, seconds_along(i, prices, other));
    return best;
  }

  double witnessed(const EndSpace::End& other, double enough) const {
    return home_ ? edge_.witnessed(end_, other, enough) : edge_.witnessed(other, end_, enough);
  }

  /// A lower bound of seconds() over all other ends of this kind.
  double least(const EdgePrices& prices, int other_kind) const {
    Choice choice(edge_.cut_, true);
    const int terms_inside =
        home_ ? std::min(other_kinds_[at(other_kind)].terms, edge_.rates_.innermost)
              : end_.terms_inside;
    Meeting all = terms(terms_inside);
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const std::size_t place = (home_ ? table.wanted_parts : table.home_parts)[at(other_kind)];
      Meeting best = meetings_[best_rows_[i][place]];
      if (!best.matched) {
        const bool nested = best.nested;
        best = unknown;
        best.nested = nested;
      }
      const AxisReading::Along& of_kinds = blocks(table, other_kind);
      all *= of_kinds.plain ? best : choice.along(best, of_kinds);
    }
    return prices.seconds(edge_.rates_, edge_.groups_, all, choice,
                          {false, static_cast<float>(terms_inside)}) *
           edge_.passes_;
  }

 private:
  using Rows = std::array<const std::uint16_t*, axis_count>;
  /// A lower bound that ignores what is not matched (Meeting::matched). Sets the bits of the tables
  /// where it did.
  [[gnu::always_inline]] double seconds_if_matched(const EdgePrices& prices,
                                                   const EndSpace::End& other,
                                                   unsigned& alone) const {
    Choice choice(edge_.cut_, false);
    const int terms_inside = home_ ? other.terms_inside : end_.terms_inside;
    Meeting all = terms(terms_inside);
    EdgePrices::Lying lying{false, static_cast<float>(terms_inside)};
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const std::uint16_t number = rows_[i][other.digits[table.axis]];
      if (table.plain) {
        const Meeting& meeting = meetings_[number];
        if (meeting.matched) [[likely]] {
          all *= meeting;
        } else {
          all *= unknown;
          alone |= 1U << i;
        }
        continue;
      }
      const Table::Met& met = table.met[number];
      if (!met.meeting.matched) [[unlikely]] {
        alone |= 1U << i;
        all *= choice.along(unknown, blocks(table, other.kind));
        continue;
      }
      all *= !met.apart || choice.takes_apart(met.own_forward, met.own_backward)
                 ? met.meeting
                 : choice.along(unknown, blocks(table, other.kind));
      lying.forward *= met.alike.forward;
      lying.backward *= met.alike.backward;
    }
    lying.exact = edge_.cut_ == 0 && all.near_homes < unknown.near_homes;
    return prices.seconds(edge_.rates_, edge_.groups_, all, choice, lying) * edge_.passes_;
  }

  /// A lower bound that describes a rank which was looked for along one table. Along other axes, it
  /// may have any block.
  [[gnu::noinline]] double seconds_along(std::size_t alone, const EdgePrices& prices,
                                         const EndSpace::End& other) const {
    Choice choice(edge_.cut_, false);
    const int terms_inside = home_ ? other.terms_inside : end_.terms_inside;
    Meeting all = terms(terms_inside);
    all.matched = false;
    EdgePrices::Lying lying{false, static_cast<float>(terms_inside)};
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const std::uint16_t number = rows_[i][other.digits[table.axis]];
      const AxisReading::Along& along = blocks(table, other.kind);
      if (along.plain || i == alone) {
        const Meeting& meeting = table.plain ? meetings_[number] : table.met[number].meeting;
        all *= meeting.matched || i == alone ? meeting : unknown;
      } else {
        all *= choice.along(unknown, along);
      }
      if (i == alone && !table.plain && table.met[number].apart)
        choice.takes_apart(table.met[number].own_forward, table.met[number].own_backward);
      lying.forward *= AxisReading::Alike::Side{along.least.wanted, along.least.homes};
      lying.backward *= AxisReading::Alike::Side{along.least.held, along.least.readers};
    }
    return prices.seconds(edge_.rates_, edge_.groups_, all, choice, lying) * edge_.passes_;
  }

  static Meeting terms(int inside) {
    Meeting meeting;
    meeting.near_wanted = meeting.near_readers = static_cast<float>(inside);
    return meeting;
  }
  const AxisReading::Along& blocks(const Table& table, int other_kind) const {
    const int home_kind = home_ ? end_.kind : other_kind,
              wanted_kind = home_ ? other_kind : end_.kind;
    return table.along[table.home_row[at(home_kind)] + table.wanted_column[at(wanted_kind)]];
  }

  const ClosedEdge& edge_;
  const std::vector<EndSpace::Kind>& other_kinds_;
  const Meeting* meetings_;
  const EndSpace::End& end_;
  bool home_;
  Rows rows_{}, best_rows_{};
};

double ClosedEdge::witnessed(const EndSpace::End& home, const EndSpace::End& wanted,
                             double enough) const {
  if (!rates_.as_messages || cut_ == 0) return 0;
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
    blocks.home_parts = home_.kinds[home.kind].parts[table.axis];
    blocks.wanted_parts = wanted_.kinds[wanted.kind].parts[table.axis];
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

/// A min-plus message from the ends of one side ("here") to the ends of the other side ("there").
/// For two given kinds, all pairs of ends without common data have the same edge cost. So the kinds
/// here are tried first, in the order of their cheapest end. For each kind there, the cheapest pair
/// without common data gives an upper bound of the message. Only the ends here that could beat this
/// bound are evaluated one by one.
class ClosedEdge::Passage {
 public:
  Passage(const ClosedEdge& edge, bool forward, std::span<const double> costs,
          std::span<const double> limits, bool rough)
      : edge_(edge),
        forward_(forward),
        rough_(rough),
        here_(forward ? edge.home_ : edge.wanted_),
        there_(forward ? edge.wanted_ : edge.home_) {
    gather(costs);
    spread(limits);
  }

  std::vector<double> run(std::span<const double> limits) {
    least_.assign(there_.ends.size(), infinity);
    in_parallel(there_by_kind_.size(), [&](std::size_t kind) {
      if (!there_by_kind_[kind].empty()) reach(static_cast<int>(kind));
    });
    return by_candidate(limits);
  }

 private:
  std::vector<double> by_candidate(std::span<const double> limits) const {
    const std::size_t candidates = limits.size();
    // No result is smaller than the least cost here, since costs of edges are never negative.
    const double least = groups_.empty() ? infinity : groups_.front().least;
    std::vector<double> result(candidates);
    for (std::size_t c = 0; c < candidates; ++c)
      result[c] = std::max(least, std::min(least_[at(there_.end_of[c])], limits[c]));
    return result;
  }

  double highest_limit(int kind) const {
    double limit = -infinity;
    for (const int end : there_by_kind_[at(kind)]) limit = std::max(limit, limit_[at(end)]);
    return limit;
  }

  [[gnu::always_inline]] EdgePrices prices(int kind_here, int kind_there) const {
    return forward_ ? edge_.prices(kind_here, kind_there) : edge_.prices(kind_there, kind_here);
  }

  struct Member {
    double cost;
    EndSpace::End end;
  };
  struct Group {
    double least;
    int kind;
    bool operator<(const Group& other) const { return least < other.least; }
  };

  void gather(std::span<const double> costs) {
    std::vector<double> of_end(here_.ends.size(), infinity);
    for (std::size_t c = 0; c < costs.size(); ++c)
      of_end[at(here_.end_of[c])] = std::min(of_end[at(here_.end_of[c])], costs[c]);
    members_.resize(here_.kinds.size());
    for (std::size_t end = 0; end < of_end.size(); ++end)
      if (of_end[end] < infinity)
        members_[here_.ends[end].kind].push_back({of_end[end], here_.ends[end]});
    for (std::size_t kind = 0; kind < members_.size(); ++kind) {
      if (members_[kind].empty()) continue;
      std::ranges::sort(members_[kind], {}, &Member::cost);
      groups_.push_back({members_[kind].front().cost, static_cast<int>(kind)});
    }
    std::ranges::sort(groups_, {}, &Group::least);
  }

  void spread(std::span<const double> limits) {
    limit_.assign(there_.ends.size(), -infinity);
    for (std::size_t c = 0; c < limits.size(); ++c)
      limit_[at(there_.end_of[c])] = std::max(limit_[at(there_.end_of[c])], limits[c]);
    there_by_kind_.resize(there_.kinds.size());
    if (groups_.empty()) return;
    for (std::size_t end = 0; end < limit_.size(); ++end)
      if (limit_[end] > groups_.front().least)
        there_by_kind_[there_.ends[end].kind].push_back(static_cast<int>(end));
  }

  struct Offer {
    double least;
    int kind;
    EdgePrices prices;
  };

  /// The cheapest pair without common data: an upper bound of the message to each end if all blocks
  /// are plain.
  struct Apart {
    double seconds = infinity;
    int kind = -1;  ///< here
  };

  /// Adds to `least`, by group, lower bounds of the message by way of the groups that it looks at.
  Apart cheapest_apart(int kind, double limit, std::vector<double>& least) const {
    Apart apart;
    for (const Group& group : groups_) {
      if (group.least >= std::min(apart.seconds, limit)) break;
      const EdgePrices of_kinds = prices(group.kind, kind);
      least.push_back(group.least + of_kinds.least() * edge_.passes_);
      const double seconds = group.least + of_kinds.most() * edge_.passes_;
      if (seconds < apart.seconds) apart = {seconds, group.kind};
    }
    return apart;
  }

  /// Upper bounds of the message to the ends of a kind.
  std::vector<double> upper_bounds(int kind, const Apart& apart) const {
    std::vector<double> bounds;
    const bool plain = apart.kind < 0 || edge_.cut_ == 0;
    const Member* const cheapest = plain ? nullptr : &members_[at(apart.kind)].front();
    for (const int end : there_by_kind_[at(kind)]) {
      const EndSpace::End& other = there_.ends[at(end)];
      double seconds = apart.seconds;
      if (cheapest && (!rough_ || edge_.splits_alike(cheapest->end, other))) {
        const Fixed fixed(edge_, !forward_, other);
        const double room = limit_[at(end)] - cheapest->cost;
        seconds =
            cheapest->cost + pair_seconds(fixed, prices(apart.kind, kind), cheapest->end, room);
      }
      bounds.push_back(std::min(seconds, limit_[at(end)]));
    }
    return bounds;
  }

  void reach(int kind) {
    std::vector<double> by_group;
    const std::vector<double> bounds =
        upper_bounds(kind, cheapest_apart(kind, highest_limit(kind), by_group));
    const double limit = std::ranges::max(bounds);
    std::vector<std::pair<double, int>> least_by_kind;
    for (std::size_t i = 0; i < groups_.size() && groups_[i].least < limit; ++i) {
      const double least =
          i < by_group.size()
              ? by_group[i]
              : groups_[i].least + prices(groups_[i].kind, kind).least() * edge_.passes_;
      if (least < limit) least_by_kind.emplace_back(least, groups_[i].kind);
    }
    std::sort(least_by_kind.begin(), least_by_kind.end());
    std::vector<Offer> offers;
    offers.reserve(least_by_kind.size());
    for (const auto& [least, other] : least_by_kind)
      offers.push_back({least, other, prices(other, kind)});
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const int end = there_by_kind_[at(kind)][i];
      const Fixed fixed(edge_, !forward_, there_.ends[at(end)]);
      double best = bounds[i];
      for (const Offer& offer : offers) {
        if (offer.least >= best) break;
        best = std::min(best, among(offer, fixed, best));
      }
      least_[at(end)] = best;
    }
  }

  /// A lower bound for one pair of ends. It need not be exact if it is `enough`.
  double pair_seconds(const Fixed& there, const EdgePrices& prices, const EndSpace::End& here,
                      double enough) const {
    const double seconds = there.seconds(prices, here);
    return rough_ || seconds >= enough ? seconds : std::max(seconds, there.witnessed(here, enough));
  }

  double among(const Offer& offer, const Fixed& there, double best) const {
    const double least = there.least(offer.prices, offer.kind);
    for (const Member& member : members_[at(offer.kind)]) {
      if (member.cost + least >= best) break;
      const double room = best - member.cost;
      best = std::min(best, member.cost + pair_seconds(there, offer.prices, member.end, room));
    }
    return best;
  }

  const ClosedEdge& edge_;
  bool forward_, rough_;
  const Side &here_, &there_;
  std::vector<std::vector<Member>> members_;  ///< by kind, cheapest first
  std::vector<Group> groups_;                 ///< cheapest first
  std::vector<double> limit_, least_;         ///< by end there
  std::vector<std::vector<int>> there_by_kind_;
};

std::vector<double> ClosedEdge::from_one(bool forward, int candidate, double cost,
                                         std::span<const double> limits) const {
  const Side &here = forward ? home_ : wanted_, &there = forward ? wanted_ : home_;
  const EndSpace::End& fixed_end = here.ends[at(here.end_of[at(candidate)])];
  const Fixed fixed(*this, forward, fixed_end);
  std::vector<double> result(limits.size(), cost);
  for (std::size_t c = 0; c < result.size(); ++c) {
    if (limits[c] <= cost) continue;
    const EndSpace::End& end = there.ends[at(there.end_of[c])];
    const EdgePrices of_kinds =
        forward ? prices(fixed_end.kind, end.kind) : prices(end.kind, fixed_end.kind);
    result[c] = std::min(limits[c], cost + fixed.seconds(of_kinds, end));
  }
  return result;
}

std::vector<double> ClosedEdge::through(bool forward, std::span<const double> costs,
                                        std::span<const double> limits, bool rough) const {
  const auto finite = [](double cost) { return cost < infinity; };
  const auto first = std::ranges::find_if(costs, finite);
  if (first != costs.end() && std::find_if(first + 1, costs.end(), finite) == costs.end())
    return from_one(forward, static_cast<int>(first - costs.begin()), *first, limits);
  return Passage(*this, forward, costs, limits, rough).run(limits);
}

}  // namespace stratplan
