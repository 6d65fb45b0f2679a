#pragma once
// The shapes (GroupShape) of groups of ranks on the machine, for each grid of a space. The ranks of
// a group differ only along a set of dimensions. Many grids share a shape, so the cost of a
// collective is computed once per shape.
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/cost/collective_cost.hpp"
#include "model/partition/grid_space.hpp"

namespace stratplan {

class GroupShapes {
 public:
  /// `space` must outlive this object. `placement`: MachineProfile::placement of the space's ranks.
  /// `sets`: the sets of dimensions that along() may be called with.
  GroupShapes(const GridSpace& space, Topology placement, std::span<const DimSet> sets);

  struct Along {
    std::vector<std::uint16_t> of_grid;  ///< by grid of the space: index into `shapes`
    std::vector<GroupShape> shapes;
  };
  /// The shapes of the groups whose ranks differ only along `dims`.
  const Along& along(DimSet dims) const;
  /// The shape on one grid, for groups that cover only `samples` consecutive blocks along N.
  GroupShape shape(std::size_t grid, DimSet dims, std::int64_t samples) const;

 private:
  Along lay_out(DimSet dims) const;
  const GridSpace& space_;
  Topology placement_;
  std::map<DimSet, Along> known_;
};

}  // namespace stratplan
