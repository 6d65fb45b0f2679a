#pragma once
// Point-to-point movement of one tensor between its producer's home distribution and what a consumer needs: halo exchange and
// redistribution are the same thing. Owner computes: what is needed and not owned is transferred.
//
// Worked table: the 9-wide input of halo.hpp, home H3, needed by the stride-2 window on H3.
//   forward   to 0: [0,3) from 0 (self), [3,4) from 1     to 1: [3,6) from 1 (self), [6,8) from 2     to 2: [7,9) from 2 (self)
//   adjoint   to 0: [0,3) from 0         to 1: [3,4) from 0, [3,6) from 1         to 2: [6,8) from 1, [7,9) from 2
#include <vector>

#include "model/partition/distribution.hpp"

namespace stratplan {

/// `region`, in the tensor's global coordinates, moves from one rank to another. Between two ranks there is at most one per tensor and direction.
struct Transfer {
  int from = 0;
  int to = 0;
  Region region;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// What one rank takes part in, each list ascending in the other rank; a transfer from a rank to itself is in both lists.
struct TransferList {
  std::vector<Transfer> receives;
  std::vector<Transfer> sends;
};

/// Ranks are the job's; producer and consumer may lie on different ones.
/// Forward: every needed element comes from exactly one owner. Of redundant owners the rank itself serves, else one in the same innermost
/// group, else by rank number so that the load spreads.
TransferList enumerate(const Distribution& home, const Needed& needed, int rank);

/// Backward: each owner (every redundant copy of it) receives the contributions that overlap what it owns; Gathered ranks contribute each, of a Redundant
/// group one member does. Received regions overlap and are to be added in the order of the list.
TransferList enumerate_adjoint(const Distribution& home, const Needed& needed, int rank);

/// Messages and bytes between different ranks, as the worst rank sees them; level 0 crosses the outermost boundary of the machine.
struct Traffic {
  struct Direction {
    std::int64_t messages = 0;
    std::int64_t elements = 0;
    friend bool operator==(const Direction&, const Direction&) = default;
  };
  std::vector<Direction> received;  ///< per level, maximum over ranks (messages and elements each)
  std::int64_t total_messages = 0;  ///< over all ranks
  std::int64_t total_elements = 0;  ///< over all ranks
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Of tensors that lie on the same ranks: the same as counting enumerate() over all of them, without listing transfers: per axis from the blocks that an interval overlaps.
Traffic summarize(const Distribution& home, const Needed& needed);
Traffic summarize_adjoint(const Distribution& home, const Needed& needed);

}  // namespace stratplan
