#pragma once
// An edge between two blocks over all grids of a space: the cost of a pair of candidates, and the
// min-plus message from many candidates to each of many.
#include <span>
#include <vector>

#include "model/cost/closed_form/edge_cost.hpp"
#include "model/cost/closed_form/end_space.hpp"

namespace stratplan {

class ClosedEdge {
 public:
  /// How the candidates of one end map to ends of the edge.
  struct Side {
    std::vector<int> end_of;  ///< by candidate: index into `ends`
    const std::vector<EndSpace::End>& ends;
    const std::vector<EndSpace::Kind>& kinds;
  };
  /// `readings`: by axis. `space` and `rates` must outlive this object.
  ClosedEdge(const EndSpace& space, const EdgeRates& rates, std::vector<AxisReading> readings,
             Side home, Side wanted, double passes);

  /// Seconds between two candidates.
  double cost(int home_candidate, int wanted_candidate) const;
  /// Implements LargeTable::through. `forward`: the costs belong to the home end.
  std::vector<double> through(bool forward, std::span<const double> costs,
                              std::span<const double> limits) const;
  /// A lower bound of through(), as if digits were always placed in the best way.
  std::vector<double> through_at_least(bool forward, std::span<const double> costs,
                                       std::span<const double> limits) const;

 private:
  /// The data of one axis, by the numbers of parts that occur at either end.
  struct Table {
    std::size_t axis = 0;
    std::vector<std::size_t> home_row, wanted_column;   ///< by kind
    std::vector<std::size_t> home_parts, wanted_parts;  ///< by kind: place_of_parts
    bool plain = true;                                  ///< whether all of `along` are plain
    std::vector<AxisReading::Sizes> sizes;
    /// same order as `sizes`; stored apart, so that sizes are contiguous
    std::vector<AxisReading::Along> along;
    /// The common part of two splits of the axis. Filled only where `plain` is false.
    struct Met {
      Meeting meeting;
      float own_forward = 1, own_backward = 1;
      bool apart = false;
    };
    std::vector<Met> met;
    std::vector<std::uint16_t> by_home, by_wanted;  ///< indices into `met`, by digits and digits
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
  std::vector<Table> tables_;       ///< axes that an end splits
  int cut_ = 0;                     ///< how many of tables_ are not plain
  AxisReading::Sizes whole_sizes_;  ///< product over all other axes
};

}  // namespace stratplan
