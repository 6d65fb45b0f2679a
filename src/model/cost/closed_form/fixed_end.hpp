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
      const std::vector<CommonLanes>& best = home ? table.best_of_home : table.best_of_wanted;
      best_[i] = best.data() + at(digits) * (best.size() / at(edge.space_.ways(axis)));
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
    const int terms = other_kinds_[at(other_kind)].terms;
    CommonLanes all = of_terms(home_ ? std::min(terms, edge_.rates_.innermost) : end_.terms_inside);
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      all *= best_[i][(home_ ? table.wanted_column : table.home_line)[at(other_kind)]];
    }
    const float common = edge_.cut_ < most_apart ? all.own[CommonLanes::common] : 1;
    return seconds(prices, all, BothWays{common, common}, true, {});
  }

 private:
  /// CommonLanes::apart, of the most axes along which a rank can be apart.
  static constexpr float apart_most = 1 << most_apart;

  /// A lower bound that ignores what is not matched (Meeting::matched). Sets the bits of the tables
  /// where it did.
  [[gnu::always_inline]] double seconds_if_matched(const EdgePrices& prices,
                                                   const EndSpace::End& other,
                                                   unsigned& alone) const {
    CommonLanes all = of_terms(home_ ? other.terms_inside : end_.terms_inside);
    EdgePrices::Scales scales;
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const std::uint16_t number = rows_[i][other.digits[table.axis]];
      const CommonLanes* lanes = lanes_[i] + number;
      const float apart = lanes->own[CommonLanes::apart];
      if (apart != 1) [[unlikely]] {
        if (apart == 0) alone |= 1U << i;
        if (apart == 0 || all.own[CommonLanes::apart] == apart_most)
          lanes = &table.unknown_lanes[pair_of(table, other.kind)];
      }
      all *= *lanes;
      if (table.plain) continue;
      scales *= table.met[number].alike;
    }
    const float apart = all.own[CommonLanes::apart],
                common = apart == apart_most ? 1 : all.own[CommonLanes::common];
    return seconds(prices, all, BothWays{common, common}, apart > 1, scales);
  }

  /// A lower bound that describes a rank which was looked for along one table. Along other axes, it
  /// may have any block.
  [[gnu::noinline]] double seconds_along(std::size_t alone, const EdgePrices& prices,
                                         const EndSpace::End& other) const {
    CommonLanes all = of_terms(home_ ? other.terms_inside : end_.terms_inside);
    EdgePrices::Scales scales;
    for (std::size_t i = 0; i < edge_.tables_.size(); ++i) {
      const Table& table = edge_.tables_[i];
      const CommonLanes& met = lanes_[i][rows_[i][other.digits[table.axis]]];
      const std::size_t pair = pair_of(table, other.kind);
      const AxisReading::Along& along = table.along[pair];
      const bool known = i == alone || (along.plain && met.own[CommonLanes::apart] != 0);
      all *= known ? met : table.unknown_lanes[pair];
      scales *= along.least;
    }
    const BothWays own = first_two(all.near) > 0 ? BothWays{1, 1} : BothWays{};
    return seconds(prices, all, own, false, scales);
  }

  static BothWays first_two(CommonLanes::Lanes lanes) {
    return __builtin_shufflevector(lanes, lanes, 0, 1);
  }
  static BothWays last_two(CommonLanes::Lanes lanes) {
    return __builtin_shufflevector(lanes, lanes, 2, 3);
  }
  /// `own`: the part of the shares in `all` that counts as own.
  [[gnu::always_inline]] double seconds(const EdgePrices& prices, const CommonLanes& all,
                                        BothWays own, bool any_block,
                                        const EdgePrices::Scales& scales) const {
    return prices.seconds(edge_.rates_, {.near = first_two(all.near),
                                         .near_blocks = last_two(all.near),
                                         .own = first_two(all.own) * own,
                                         .any_block = any_block,
                                         .scales = scales}) *
           edge_.passes_;
  }
  /// `inside`: the number of terms in an innermost group.
  static CommonLanes of_terms(int inside) {
    CommonLanes lanes;
    const auto terms = static_cast<float>(inside);
    lanes.near = CommonLanes::Lanes{1, terms, 1, terms};
    return lanes;
  }
  /// The index of both kinds in `sizes`, and in what has the same order.
  std::size_t pair_of(const Table& table, int other_kind) const {
    const int home_kind = home_ ? end_.kind : other_kind,
              wanted_kind = home_ ? other_kind : end_.kind;
    return table.home_row[at(home_kind)] + table.wanted_column[at(wanted_kind)];
  }

  const ClosedEdge& edge_;
  const std::vector<EndSpace::Kind>& other_kinds_;
  const EndSpace::End& end_;
  bool home_;
  std::array<const std::uint16_t*, axis_count> rows_{};
  std::array<const CommonLanes*, axis_count> lanes_{}, best_{};
};

}  // namespace stratplan
