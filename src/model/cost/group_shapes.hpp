#pragma once
// How the groups along a set of dimensions lie on the machine, on each grid of a space. Many grids place them alike, so what a collective costs is asked for once.
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "model/cost/collective_cost.hpp"
#include "model/partition/grid_space.hpp"

namespace stratplan {

class GroupShapes {
 public:
  /// `space` must outlive this. `placement`: MachineProfile::placement of its ranks.
  GroupShapes(const GridSpace& space, Topology placement);

  struct Along {
    std::vector<std::uint16_t> of_grid;  ///< by grid of the space: index into `shapes`
    std::vector<GroupShape> shapes;
  };
  /// Of ranks that differ along `dims` alone. Threads may ask at once.
  const Along& along(DimSet dims);
  /// The same on one grid, of ranks besides in the same set of so many consecutive blocks of samples.
  GroupShape shape(std::size_t grid, DimSet dims, std::int64_t samples) const;

 private:
  const GridSpace& space_;
  Topology placement_;
  std::mutex asking_;
  std::map<DimSet, Along> known_;
};

}  // namespace stratplan
