#pragma once
// An edge between two blocks over all grids of a space: what pairs of candidates cost, and the cheapest way through it from many candidates to each of many.
#include <span>
#include <vector>

#include "model/cost/edge_model.hpp"
#include "model/cost/end_space.hpp"

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
  /// As WideTable::through; `forward`: this end is home.
  std::vector<double> through(bool forward, std::span<const double> costs,
                              std::span<const double> limits) const;
  /// No more than that: as if digits were always placed as is best.
  std::vector<double> through_at_least(bool forward, std::span<const double> costs,
                                       std::span<const double> limits) const;

 private:
  class Fixed;
  class Passage;
  std::vector<double> from_one(bool forward, int candidate, double cost,
                               std::span<const double> limits) const;
  EdgePrices prices(int home_kind, int wanted_kind) const;
  const EndSpace& space_;
  const EdgeRates& rates_;
  Side home_, wanted_;
  double passes_;
  /// Of one axis, by the numbers of parts that occur at either end.
  struct Table {
    std::size_t axis = 0;
    std::vector<std::size_t> home_row, wanted_column;   ///< by kind
    std::vector<std::size_t> home_parts, wanted_parts;  ///< by kind: place_of_parts
    bool shifted = false, plain = true;                 ///< plain: neither shifted nor with a halo
    std::vector<AxisReading::Sizes> sizes;
    std::vector<AxisReading::Unhaloed> unhaloed;
  };
  std::vector<Table> tables_;       ///< of axes that an end splits
  AxisReading::Sizes whole_sizes_;  ///< of all others
  float halo_ = 1;                  ///< a block with its halo is so many times the block at most
};

}  // namespace stratplan
