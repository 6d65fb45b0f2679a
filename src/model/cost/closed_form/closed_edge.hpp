#pragma once
// An edge between two blocks over all grids of a space: what pairs of candidates cost, and the
// cheapest way through it from many candidates to each of many.
#include <span>
#include <vector>

#include "model/cost/closed_form/edge_cost.hpp"
#include "model/cost/closed_form/end_space.hpp"

namespace stratplan {

class ClosedEdge {
 public:
  /// How candidates see the edge at one end.
  struct Side {
    std::vector<int> end_of;  ///< by candidate: index into `ends`
    const std::vector<EndSpace::End>& ends;
    const std::vector<EndSpace::Kind>& kinds;
  };
  /// `readings` by axis. `space` and `rates` must outlive this.
  ClosedEdge(const EndSpace& space, const EdgeRates& rates, std::vector<AxisReading> readings,
             Side home, Side wanted, double passes);

  /// Seconds between two candidates.
  double cost(int home_candidate, int wanted_candidate) const;
  /// As LargeTable::through; `forward`: this end is home.
  std::vector<double> through(bool forward, std::span<const double> costs,
                              std::span<const double> limits) const;
  /// No more than that: as if digits were always placed as is best.
  std::vector<double> through_at_least(bool forward, std::span<const double> costs,
                                       std::span<const double> limits) const;

 private:
  /// Of one axis, by the numbers of parts that occur at either end.
  struct Table {
    std::size_t axis = 0;
    std::vector<std::size_t> home_row, wanted_column;   ///< by kind
    std::vector<std::size_t> home_parts, wanted_parts;  ///< by kind: place_of_parts
    bool plain = true;                                  ///< all of them
    std::vector<AxisReading::Sizes> sizes;
    std::vector<AxisReading::Along> along;  ///< of the same: apart, so that sizes lie together
    /// Where not all are plain, what two ways to split the axis have in common; else nothing.
    struct Met {
      Meeting meeting;
      float own_forward = 1, own_backward = 1;
      bool apart = false;
    };
    std::vector<Met> met;
    std::vector<std::uint16_t> by_home, by_wanted;  ///< of them, by digits and digits
  };
  class Fixed;
  class Passage;
  std::vector<double> from_one(bool forward, int candidate, double cost,
                               std::span<const double> limits) const;
  EdgePrices prices(int home_kind, int wanted_kind) const;
  static Table::Met met_along(const Meeting& meeting, const AxisReading::Along& blocks);
  void meet_all(Table& table, const std::vector<int>& homes, const std::vector<int>& wanted) const;
  const EndSpace& space_;
  const EdgeRates& rates_;
  Side home_, wanted_;
  double passes_;
  std::vector<Table> tables_;       ///< of axes that an end splits
  int cut_ = 0;                     ///< how many of them are not plain
  AxisReading::Sizes whole_sizes_;  ///< of all others
};

}  // namespace stratplan
