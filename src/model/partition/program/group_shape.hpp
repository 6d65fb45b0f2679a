#pragma once
// How a group of ranks lies on a machine of several levels, and the keys of its collectives.
#include <array>
#include <string>
#include <vector>

#include "model/partition/process_grid.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// How the members of a group lie on the machine. `members` has an entry per level of
/// MachineProfile::levels, outermost first. An entry is the number of the level's parts that the
/// members occupy within one part of the level outside it. The parts of the innermost level are
/// ranks. The product of the entries is the group's size. Four ranks in each of two nodes are
/// {2, 4}; one rank in each of eight nodes is {8, 1}.
struct GroupShape {
  static constexpr std::size_t most_levels = 4;
  std::array<int, most_levels> members{1, 1, 1, 1};
  int size() const { return members[0] * members[1] * members[2] * members[3]; }
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};
/// Returns the shape of a group. `placement`: MachineProfile::placement of the job. If the group
/// lies unevenly on the machine, the result is the shape around its first member.
GroupShape shape_of(const std::vector<int>& group, const Topology& placement);

/// The key in MachineProfile::collectives for a group within the innermost level:
/// "all_reduce f32 2".
std::string collective_key(Collective op, DataType type, int group_size);
/// The key for any group: "all_reduce f32 8x1" for one rank on each of eight nodes. The key lists
/// the members at each level, from the outermost level that has more than one member.
std::string collective_key(Collective op, DataType type, const GroupShape& shape,
                           std::size_t levels);

}  // namespace stratplan
