#pragma once
// How one tensor lies over ranks: which grid dimensions split which axis, what the remaining ones
// mean, and which of the job's ranks they are. Ranks are the grid's unless they are called the
// job's.
#include <array>
#include <string>
#include <vector>

#include "model/partition/halo.hpp"
#include "model/partition/interval.hpp"
#include "model/partition/process_grid.hpp"
#include "model/partition/ranks.hpp"

namespace stratplan {

/// What a grid dimension does to a tensor.
///   kind       meaning                                          dual (of the gradient)
///   Block      splits one of its axes                           Block
///   Gathered   splits something else; each rank uses the whole  Partial: the gradient is a sum
///                                                               over these ranks
///   Partial    each rank holds one term of a sum                Gathered
///   Redundant  the work is repeated                             Redundant: the gradient is already
///                                                               complete
enum class Role : std::uint8_t { Block, Gathered, Partial, Redundant };

/// The grid dimensions that split one axis, outermost first: blocks of blocks. At most two (the
/// channel axis after a convolution split over both its filters and its channels).
struct Split {
  DimList by;
  std::int64_t quantum =
      1;  ///< blocks are whole multiples of it (groups, vector width), the last perhaps cut
  friend bool operator==(const Split&, const Split&) = default;
};

struct Distribution {
  Shape shape;
  ProcessGrid grid;
  std::array<Split, axis_count> splits;  ///< per tensor axis
  std::array<Role, dim_count> roles{};  ///< per grid dimension; Block exactly for those in `splits`
  Ranks ranks{};                        ///< of the job

  const Split& split(Axis axis) const { return splits[static_cast<int>(axis)]; }
  Role role(Dim dim) const { return roles[static_cast<int>(dim)]; }
  /// The grid's rank of one of the job's; -1 if it holds nothing of the tensor.
  int place(int job_rank) const { return ranks.of_grid(job_rank, grid.ranks()); }
  /// The job's ranks that differ from `rank` only along `dims`.
  std::vector<int> group(int rank, const DimList& dims) const {
    return ranks.of_job(grid.group(rank, dims));
  }
  /// Interval of the block that a rank holds along an axis.
  Interval owned(Axis axis, int rank) const;
  Region owned(int rank) const;
  /// The same of the ranks with these block indices along the grid's dimensions.
  Interval owned(Axis axis, const std::array<int, dim_count>& indices) const;
  /// The gradient's distribution: Gathered and Partial change places.
  Distribution dual() const;
  /// Grid dimensions with this role and more than one part.
  DimList dims_with(Role role) const;
  /// "N:N2 C:F2xC2 | gathered H, redundant R", for messages.
  std::string text() const;
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// The regions of one tensor that the ranks of a consumer read: blocks of the consumer's iteration
/// space, seen through its windows. On an axis without a window the iteration space is the tensor's
/// own axis, or a longer one in which the tensor lies somewhere (an input of a concatenation).
struct Needed {
  Shape tensor;                     ///< global shape of the tensor that is read
  Distribution iteration;           ///< blocks of the iteration space; roles as seen by this tensor
  std::array<Window, 3> windows{};  ///< along D, H, W; the default window is the identity
  std::array<Scale, 3> scales{};    ///< along D, H, W, instead of a window
  std::int64_t first_channel =
      0;  ///< where the tensor's channels begin on the C axis of the iteration space
  /// the windows slide over the iteration space: a block needs the positions whose windows reach it
  bool transposed = false;

  /// What positions [begin, end) of the iteration space read; along D, H, W it may reach beyond the
  /// tensor. Ascends with the positions.
  Interval unclipped(Axis axis, Interval positions) const;

  Interval region(Axis axis, int rank) const;
  Region region(int rank) const;
  Interval region(Axis axis, const std::array<int, dim_count>& indices) const;
};

}  // namespace stratplan
