#pragma once
// How a group of ranks lies on a machine of several levels, and the names of what they do together.
#include <array>
#include <string>
#include <vector>

#include "model/partition/process_grid.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// How the members of a group lie on the machine: how many groups of the next level (ranks, at the
/// innermost) they are in at each of MachineProfile::levels. Their product is the group's size.
/// Four ranks in each of two nodes: {2, 4}; one in each of eight: {8, 1}.
struct GroupShape {
  static constexpr std::size_t most_levels = 4;
  std::array<int, most_levels> members{1, 1, 1, 1};
  int size() const { return members[0] * members[1] * members[2] * members[3]; }
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};
/// `placement`: MachineProfile::placement of the job. Of a group that is not everywhere alike, as
/// its first member sees it.
GroupShape shape_of(const std::vector<int>& group, const Topology& placement);

/// "all_reduce f32 2": the key in MachineProfile::collectives, of ranks that meet at the innermost
/// level.
std::string collective_key(Collective op, DataType type, int group_size);
/// The same of any group: "all_reduce f32 8x1" for one rank on each of eight nodes, members at each
/// level from the outermost that has several.
std::string collective_key(Collective op, DataType type, const GroupShape& shape,
                           std::size_t levels);

}  // namespace stratplan
