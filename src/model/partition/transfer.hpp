#pragma once
// Point-to-point movement of one tensor between its producer's home distribution and what a
// consumer needs: halo exchange and redistribution are the same thing. Owner computes: what is
// needed and not owned is transferred.
//
// Worked table: the 9-wide input of halo.hpp, home H3, needed by the stride-2 window on H3.
//   forward  to 0: [0,3) from 0 (self), [3,4) from 1     to 1: [3,6) from 1 (self), [6,8) from 2
//            to 2: [7,9) from 2 (self)
//   adjoint  to 0: [0,3) from 0         to 1: [3,4) from 0, [3,6) from 1         to 2: [6,8) from
//            1, [7,9) from 2
#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/partition/distribution.hpp"

namespace stratplan {

/// `region`, in the tensor's global coordinates, moves from one rank to another. Between two ranks
/// there is at most one per tensor and direction.
struct Transfer {
  int from = 0;
  int to = 0;
  Region region;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// What one rank takes part in, each list ascending in the other rank; a transfer from a rank to
/// itself is in both lists.
struct TransferList {
  std::vector<Transfer> receives;
  std::vector<Transfer> sends;
};

/// Ranks are the job's; producer and consumer may lie on different ones.
/// Forward: every needed element comes from exactly one owner. Of redundant owners the rank itself
/// serves, else one in the same innermost group, else by rank number so that the load spreads.
TransferList enumerate(const Distribution& home, const Needed& needed, int rank);

/// Backward: each owner (every redundant copy of it) receives the contributions that overlap what
/// it owns; Gathered ranks contribute each, of a Redundant group one member does. Received regions
/// overlap and are to be added in the order of the list.
TransferList enumerate_adjoint(const Distribution& home, const Needed& needed, int rank);

struct Arrivals {
  std::int64_t messages = 0;
  std::int64_t elements = 0;
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

/// What each rank receives in one direction, in exact numbers but without a list of transfers:
/// along each axis the blocks that an interval meets are counted, and the counts multiplied. Of
/// tensors that lie on the same ranks; ranks are the grid's. Refers to `home` and `needed`.
class ArrivalCounts {
 public:
  /// Forward as enumerate(), or as enumerate_adjoint().
  ArrivalCounts(const Distribution& home, const Needed& needed, bool adjoint);
  /// By a number of outermost levels, what comes from ranks in which the sender's digits agree with
  /// the rank's own: [0] is all of it, the last what the rank has itself. Redundant copies agree at
  /// every level, for the nearest serves; of a sum each term arrives. Holds until the next call.
  std::span<const Arrivals> within(int rank);

 private:
  const Distribution& senders() const { return adjoint_ ? needed_.iteration : home_; }
  std::vector<Arrivals> along(Axis axis, int rank) const;

  const Distribution& home_;
  const Needed& needed_;
  bool adjoint_;
  std::vector<std::int64_t> terms_;  ///< by level
  /// By axis, and by the rank's blocks at both ends: ranks share these.
  std::array<std::unordered_map<std::int64_t, std::vector<Arrivals>>, axis_count> known_;
  std::vector<Arrivals> within_;
};

/// Messages and elements between different ranks; level 0 crosses the outermost boundary of the
/// machine.
struct Traffic {
  std::vector<Arrivals> received;  ///< per level, the most of any rank (messages and elements each)
  std::int64_t total_messages = 0;  ///< over all ranks
  std::int64_t total_elements = 0;  ///< over all ranks
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
Traffic summarize(const Distribution& home, const Needed& needed);
Traffic summarize_adjoint(const Distribution& home, const Needed& needed);

}  // namespace stratplan
