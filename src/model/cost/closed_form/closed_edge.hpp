#pragma once
// An edge between two blocks over all grids of a space. It gives a lower bound of the cost of a
// pair of candidates, and min-plus messages from the candidates of one end to those of the other
// end.
#include <limits>
#include <span>
#include <vector>

#include "model/cost/closed_form/edge_cost.hpp"
#include "model/cost/closed_form/end_space.hpp"
#include "model/cost/closed_form/witnesses.hpp"

namespace stratplan {

class ClosedEdge {
 public:
  /// The candidates of one side of the edge. Candidates that split the edge's tensor alike share an
  /// EndSpace::End.
  struct Side {
    std::vector<int> end_of;  ///< by candidate: index into `ends`
    const std::vector<EndSpace::End>& ends;
    const std::vector<EndSpace::Kind>& kinds;
  };
  /// `readings`: by axis. `passes`: how often the edge's transfers run in a step. `space`, `rates`,
  /// and the ends and kinds of both sides must outlive this object.
  ClosedEdge(const EndSpace& space, const EdgeRates& rates, std::vector<AxisReading> readings,
             Side home, Side wanted, double passes);

  /// A lower bound, in seconds, of the edge's cost for a pair of candidates.
  double cost(int home_candidate, int wanted_candidate) const;
  /// Implements LargeTable::through. `forward`: the costs belong to the home end. Rough messages
  /// ask no witnesses.
  std::vector<double> through(bool forward, std::span<const double> costs,
                              std::span<const double> limits, bool rough) const;

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  /// The data of one axis, by the numbers of parts that occur at either end.
  struct Table {
    std::size_t axis = 0;
    std::vector<int> homes, wanted;  ///< numbers of parts that occur at either end, ascending
    std::vector<std::size_t> home_row, wanted_column;  ///< by kind; their sum indexes `sizes`
    std::vector<std::size_t> home_line;                ///< by kind: home_row / number of columns
    bool plain = true;                                 ///< whether all of `along` are plain
    std::vector<AxisReading::Sizes> sizes;
    /// both in the order of `sizes`; stored apart, so that sizes are contiguous
    std::vector<AxisReading::Along> along;
    std::vector<Nesting> nesting;
    /// The common part of two splits of the axis. A lower bound describes one rank. Along some
    /// axes the rank is apart: its blocks at both ends have nothing in common. Then it owns at most
    /// these shares of what it else can own.
    struct Met {
      Meeting meeting;
      bool apart = false;
      float own_forward = 1, own_backward = 1;
      AxisReading::Alike alike{};  ///< if both ends have the same digits
    };
    std::vector<Met> met;            ///< filled only if `plain` is false
    std::vector<CommonLanes> lanes;  ///< of `met`
    /// of a rank of which nothing is known along the axis; same order as `sizes`
    std::vector<CommonLanes> unknown_lanes;
    /// The most that the end in the vector's name can have in common with any other end of a number
    /// of parts. By its digits, then by line or column of that number. CommonLanes::apart is
    /// unused.
    std::vector<CommonLanes> best_of_home, best_of_wanted;
    /// by number of parts, in the order of rows and of columns; filled only if `plain` is false
    std::vector<std::vector<AxisReading::Place>> home_places, wanted_places;
    std::vector<std::vector<AxisBlocks::Count>> reads,
        writes;  ///< in the order of `sizes`; empty where witnesses do not need them
    /// indices into `met`, by the digits of the end in the table's name, then by those of the other
    std::vector<std::uint16_t> by_home, by_wanted;
  };
  class Fixed;    // fixed_end.hpp
  class Passage;  // edge_messages.cpp
  std::vector<double> from_one(bool forward, int candidate, double cost,
                               std::span<const double> limits) const;
  EdgePrices prices(int home_kind, int wanted_kind) const;
  /// The time of the slowest witness, in seconds: another lower bound of cost(). 0 if it is no
  /// better, because all blocks are plain, or if blocks are not known. Any number above `enough` if
  /// it is above.
  double witnessed(const EndSpace::End& home, const EndSpace::End& wanted, double enough) const;
  /// Whether both ends split some axis of blocks that are not equally long by the same digits.
  bool splits_alike(const EndSpace::End& a, const EndSpace::End& b) const;
  void set_alike(Table& table, AxisReading& reading, int digits, std::size_t pair) const;
  static CommonLanes lanes_of(const Table::Met& met);
  static Table::Met met_along(const Meeting& meeting, const AxisReading::Along& blocks);
  CommonLanes best_along(Meeting meeting, const AxisReading::Along& blocks) const;
  void find_best(Table& table) const;
  void meet_all(Table& table, AxisReading& reading) const;
  /// For any two axes, some rank is apart along both. For three axes, there may be no such rank.
  static constexpr int most_apart = 2;
  const EndSpace& space_;
  const EdgeRates& rates_;
  Side home_, wanted_;
  double passes_;
  std::vector<Table> tables_;       ///< one per axis that some end splits
  int cut_ = 0;                     ///< number of tables_ that are not plain
  AxisReading::Sizes whole_sizes_;  ///< product over the axes that no end splits
};

}  // namespace stratplan
