#pragma once
// The price of a pair of ends of an edge. This is the innermost loop of the search over many ranks:
// all of it is inlined.
#include <algorithm>
#include <array>
#include <vector>

#include "model/base/index.hpp"
#include "model/cost/closed_form/closed_edge.hpp"

namespace stratplan {

/// Always inlined, so that the compiler omits those members of the result that a caller ignores.
[[gnu::always_inline]] inline EdgePrices ClosedEdge::prices(int home_kind, int wanted_kind) const {
  AxisReading::Sizes products = whole_sizes_;
  for (const Table& table : tables_)
    products *= table.sizes[table.home_row[at(home_kind)] + table.wanted_column[at(wanted_kind)]];
  return EdgePrices(rates_, products, static_cast<float>(wanted_.kinds[at(wanted_kind)].terms));
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
      lanes_[i] = table.plain ? edge.space_.lanes().data() : table.lanes.data();
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
      if (!best.matched) best = unknown;
      const AxisReading::Along& of_kinds = blocks(table, other_kind);
      all *= of_kinds.plain ? best : choice.along(best, of_kinds);
    }
    return seconds(prices, lying(all, choice, {}));
  }

 private:
  /// CommonLanes::apart, of the most axes along which a rank can be apart.
  static constexpr float most_apart = 1 << Choice::most_apart;

  /// A lower bound that ignores what is not matched (Meeting::matched). Sets the bits of the tables
  /// where it did.
  [[gnu::always_inline]] double seconds_if_matched(const EdgePrices& prices,
                                                   const EndSpace::End& other,
                                                   unsigned& alone) const {
    const auto inside = static_cast<float>(home_ ? other.terms_inside : end_.terms_inside);
    CommonLanes all;
    all.near = CommonLanes::Lanes{1, 1, inside, inside};
    EdgePrices::Scales scales;
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const std::uint16_t number = rows_[i][other.digits[table.axis]];
      const CommonLanes* lanes = lanes_[i] + number;
      const float apart = lanes->own[CommonLanes::apart];
      if (apart != 1) [[unlikely]] {
        if (apart == 0) alone |= 1U << i;
        if (apart == 0 || all.own[CommonLanes::apart] == most_apart)
          lanes = &table.unknown_lanes[pair_of(table, other.kind)];
      }
      all *= *lanes;
      if (table.plain) continue;
      const AxisReading::Alike& alike = table.met[number].alike;
      scales.forward *= alike.forward;
      scales.backward *= alike.backward;
    }
    const float apart = all.own[CommonLanes::apart],
                common = apart == most_apart ? 1 : all.own[CommonLanes::common];
    return seconds(prices, {.near_home = all.near[CommonLanes::near_home],
                            .near_homes = all.near[CommonLanes::near_homes],
                            .near_wanted = all.near[CommonLanes::near_wanted],
                            .near_readers = all.near[CommonLanes::near_readers],
                            .own_forward = all.own[CommonLanes::own_forward] * common,
                            .own_backward = all.own[CommonLanes::own_backward] * common,
                            .any_block = apart > 1,
                            .scales = scales});
  }

  /// A lower bound that describes a rank which was looked for along one table. Along other axes, it
  /// may have any block.
  [[gnu::noinline]] double seconds_along(std::size_t alone, const EdgePrices& prices,
                                         const EndSpace::End& other) const {
    Choice choice(edge_.cut_, false);
    const int terms_inside = home_ ? other.terms_inside : end_.terms_inside;
    Meeting all = terms(terms_inside);
    all.matched = false;
    EdgePrices::Scales scales;
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
      scales.forward *= AxisReading::Alike::Side{along.least.wanted, along.least.homes};
      scales.backward *= AxisReading::Alike::Side{along.least.held, along.least.readers};
    }
    return seconds(prices, lying(all, choice, scales));
  }

  [[gnu::always_inline]] double seconds(const EdgePrices& prices,
                                        const EdgePrices::Lying& lying) const {
    return prices.seconds(edge_.rates_, lying) * edge_.passes_;
  }
  static EdgePrices::Lying lying(const Meeting& all, const Choice& choice,
                                 const EdgePrices::Scales& scales) {
    return {all.near_home,
            all.near_homes,
            all.near_wanted,
            all.near_readers,
            choice.own_forward(all),
            choice.own_backward(all),
            choice.any_block() && all.matched,
            scales};
  }
  static Meeting terms(int inside) {
    Meeting meeting;
    meeting.near_wanted = meeting.near_readers = static_cast<float>(inside);
    return meeting;
  }
  /// The index of both kinds in `sizes`, and in what has the same order.
  std::size_t pair_of(const Table& table, int other_kind) const {
    const int home_kind = home_ ? end_.kind : other_kind,
              wanted_kind = home_ ? other_kind : end_.kind;
    return table.home_row[at(home_kind)] + table.wanted_column[at(wanted_kind)];
  }
  const AxisReading::Along& blocks(const Table& table, int other_kind) const {
    return table.along[pair_of(table, other_kind)];
  }

  const ClosedEdge& edge_;
  const std::vector<EndSpace::Kind>& other_kinds_;
  const Meeting* meetings_;
  const EndSpace::End& end_;
  bool home_;
  std::array<const std::uint16_t*, axis_count> rows_{}, best_rows_{};
  std::array<const CommonLanes*, axis_count> lanes_{};
};

}  // namespace stratplan
