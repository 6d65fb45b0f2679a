#pragma once
// Redistribution by collectives. Where all ranks of disjoint groups need the same data, or sum the
// same data, an edge's tensor moves in collectives over these groups. Everywhere else it moves in
// messages between pairs of ranks (transfer.hpp).
//
// Worked table, 8 ranks. Each group of the last two columns is {0, ..., 7} or {0, ..., 3} and
// {4, ..., 7}.
//   home     consumer   forward                  adjoint
//   F8       R8         all-gather of 8          nothing moves
//   R8       F8         nothing moves            all-reduce of 8
//   F8       F8         all-gather of 8          reduce-scatter of 8
//   N8       N2 F4      all-gather of 4          reduce-scatter of 4
//   R8       N8         nothing moves            all-gather of 8
//   R8       N2 F4      nothing moves            all-reduce of 4, all-gather of 2
//   N8       C8, H8     messages (all-to-all)    messages
//   H8, halo H8         messages                 messages
#include <vector>

#include "model/partition/distribution.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// A run of the elements of a tile, in the order in which they lie in memory.
struct TilePart {
  Region tile;
  Interval run;
  std::int64_t elements() const { return run.size(); }
  friend bool operator==(const TilePart&, const TilePart&) = default;
};

/// One collective of a redistribution, as one rank takes part in it.
struct GroupMove {
  Collective op = Collective::AllGather;
  std::vector<int> group;  ///< ascending ranks of the job
  /// The tensor's region that all members hold before a reduction, or after an all-gather.
  Region region;
  /// By member: the part that it brings to an all-gather, or gets from a reduce-scatter. Parts of
  /// one tile follow each other. Empty for an all-reduce.
  std::vector<TilePart> parts;

  /// The different tiles of `parts`, in their order.
  std::vector<Region> tiles() const;
  /// Whether the tiles follow each other in memory as in a buffer of `region`. Otherwise, they are
  /// copied to or from another buffer.
  bool in_place() const;
};

/// Return the collectives by which the transfers of enumerate() or of enumerate_adjoint() are made,
/// in order. The result is the same for all ranks, apart from groups and regions. It is empty where
/// messages make the transfers, where nothing moves, and for ranks outside the grids. `rank` is a
/// rank of the job.
std::vector<GroupMove> collectives(const Distribution& home, const Needed& needed, int rank);
std::vector<GroupMove> collectives_adjoint(const Distribution& home, const Needed& needed,
                                           int rank);

}  // namespace stratplan
