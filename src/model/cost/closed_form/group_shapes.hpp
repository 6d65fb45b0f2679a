#pragma once
// How the groups along a set of dimensions lie on the machine, on each grid of a space. Many grids
// place them alike, so what a collective costs is asked for once.
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/cost/collective_cost.hpp"
#include "model/partition/grid_space.hpp"

namespace stratplan {

class GroupShapes {
 public:
  /// `space` must outlive this. `placement`: MachineProfile::placement of its ranks. `sets`: of
  /// dimensions, that will be asked about.
  GroupShapes(const GridSpace& space, Topology placement, std::span<const DimSet> sets);

  struct Along {
    std::vector<std::uint16_t> of_grid;  ///< by grid of the space: index into `shapes`
    std::vector<GroupShape> shapes;
  };
  /// Of ranks that differ along `dims` alone.
  const Along& along(DimSet dims) const;
  /// The same on one grid, of ranks besides in the same set of so many consecutive blocks of
  /// samples.
  GroupShape shape(std::size_t grid, DimSet dims, std::int64_t samples) const;

 private:
  Along lay_out(DimSet dims) const;
  const GridSpace& space_;
  Topology placement_;
  std::map<DimSet, Along> known_;
};

}  // namespace stratplan
