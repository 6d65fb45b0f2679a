#pragma once
// Point-to-point movement of one tensor between its producer's home distribution and the regions
// that a consumer needs. Halo exchange and redistribution are the same operation. The rule is owner
// computes: every element that a rank needs and does not own is transferred.
//
// Worked table: the 9-wide input of halo.hpp, home H3, needed by the stride-2 window on H3.
//   forward  to 0: [0,3) from 0 (self), [3,4) from 1     to 1: [3,6) from 1 (self), [6,8) from 2
//            to 2: [7,9) from 2 (self)
//   adjoint  to 0: [0,3) from 0         to 1: [3,4) from 0, [3,6) from 1         to 2: [6,8) from
//            1, [7,9) from 2
//
// Worked table: the same input, home H3, wrapped around by 2 on both sides, so 13 rows that are
// read on H3: [-2,3), [3,7), [7,11). Row -2 is row 7, and row 9 is row 0.
//   forward  to 0: [0,3) from 0 (self), [7,9) from 2 as [-2,0)
//            to 1: [3,6) from 1 (self), [6,7) from 2
//            to 2: [7,9) from 2 (self), [0,2) from 0 as [9,11)
#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/partition/distribution.hpp"

namespace stratplan {

/// A region, in the tensor's global coordinates, that moves from one of the job's ranks to another.
/// Two ranks have at most one transfer per tensor and direction, unless the tensor wraps around.
/// Transfers between two ranks travel in one message, in the order of the list, which is the same
/// on both ranks.
struct Transfer {
  int from = 0;
  int to = 0;
  Region region;
  /// how far behind `region` the consumer reads it: multiples of the extents along which the
  /// tensor wraps around
  std::array<std::int64_t, axis_count> shift{};
  /// The region in the coordinates of Needed::region().
  Region read() const { return moved(region, shift); }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// The transfers of one rank. Each list ascends by the peer's rank. A transfer from the rank to
/// itself is in both lists.
struct TransferList {
  std::vector<Transfer> receives;
  std::vector<Transfer> sends;
};

/// Returns a rank's forward transfers. Every needed element comes from exactly one owner. Among
/// redundant owners, the rank itself serves if it is an owner. Otherwise a nearest owner serves,
/// chosen by rank number so that the load spreads. `rank` is a rank of the job. Producer and
/// consumer may lie on different ranks of the job.
TransferList enumerate(const Distribution& home, const Needed& needed, int rank);

/// Returns a rank's backward transfers. Each owner, and each rank with a redundant copy of the
/// owner's block, receives the contributions to the block. Each member of a Gathered group
/// contributes, but only one member of a Redundant group. Received regions may overlap; add them in
/// the order of the list. `rank` is a rank of the job.
TransferList enumerate_adjoint(const Distribution& home, const Needed& needed, int rank);

/// The number of messages and elements that arrive at one rank.
struct Arrivals {
  std::int64_t messages = 0;
  std::int64_t elements = 0;
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

/// Counts exactly what each rank receives in one direction, without a list of transfers. The blocks
/// that overlap an interval are counted along each axis, and the counts are multiplied. Ranks are
/// ranks of the grid.
class ArrivalCounts {
 public:
  /// Counts the transfers of enumerate(), or with `adjoint` those of enumerate_adjoint(). Requires
  /// that home and consumer lie on the same ranks. Both arguments must outlive this object.
  ArrivalCounts(const Distribution& home, const Needed& needed, bool adjoint);
  /// Returns the counts by number of outermost levels. Entry l counts the arrivals from senders
  /// whose digits agree with the receiver's in the l outermost levels. So entry 0 counts all
  /// arrivals, and the last entry counts what the rank sends to itself. Digits of redundant
  /// dimensions always count as equal, since the nearest copy serves. Each term of a sum counts as
  /// an arrival. The span is valid until the next call.
  std::span<const Arrivals> within(int rank);

 private:
  /// Index: a number of outermost levels. Key: block indices in these levels, as one number. Value:
  /// the counts over the blocks with these indices that overlap one interval.
  using Groups = std::vector<std::unordered_map<std::int64_t, Arrivals>>;
  /// The counts along one axis. Ranks share an entry if their block indices are equal in both the
  /// senders' and the receivers' distribution. Ranks share the groups if their block indices are
  /// equal in the receivers' distribution.
  struct Along {
    std::vector<int> entry_of;  ///< index by rank; empty if all ranks share one entry
    std::vector<std::vector<Arrivals>> entries;       ///< each by number of levels; filled on use
    std::unordered_map<std::int64_t, Groups> groups;  ///< by the receiver's indices as one number
  };
  const Distribution& senders() const { return adjoint_ ? needed_.iteration : home_; }
  const Distribution& receivers() const { return adjoint_ ? home_ : needed_.iteration; }
  Along entries_along(Axis axis) const;
  Groups groups_along(Axis axis, int rank) const;
  std::vector<Arrivals> counts_along(Axis axis, int rank);

  const Distribution& home_;
  const Needed& needed_;
  bool adjoint_;
  /// By number of outermost levels, as in within(): the number of terms of a sum that come from
  /// senders with these levels in common.
  std::vector<std::int64_t> terms_;
  std::array<Along, axis_count> along_;
  std::vector<Arrivals> within_;
};

/// Messages and elements between different ranks. Level 0 is the machine's outermost level.
struct Traffic {
  /// by the outermost level at which sender and receiver differ: the most messages, and the most
  /// elements, that any rank receives
  std::vector<Arrivals> received;
  std::int64_t total_messages = 0;  ///< over all ranks
  std::int64_t total_elements = 0;  ///< over all ranks
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
/// Return the traffic of the transfers of enumerate() and of enumerate_adjoint(). Both require that
/// home and consumer lie on the same ranks.
Traffic summarize(const Distribution& home, const Needed& needed);
Traffic summarize_adjoint(const Distribution& home, const Needed& needed);

}  // namespace stratplan
