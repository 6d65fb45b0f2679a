#pragma once
// How one tensor lies on ranks: which grid dimensions split which axis, what the other dimensions
// mean, and on which of the job's ranks the grid lies. In this file, a rank is a rank of the grid,
// unless a comment says "the job's".
#include <array>
#include <string>
#include <vector>

#include "model/partition/halo.hpp"
#include "model/partition/interval.hpp"
#include "model/partition/process_grid.hpp"
#include "model/partition/ranks.hpp"

namespace stratplan {

/// What a grid dimension does to a tensor, and the dual role that it has for the gradient.
///   role       meaning                                          role for the gradient
///   Block      splits an axis of the tensor                     Block
///   Gathered   splits something else; each rank uses the whole  Partial: the gradient is a sum
///                                                               over these ranks
///   Partial    each rank holds one term of a sum                Gathered
///   Redundant  ranks repeat the same work                       Redundant: the gradient is already
///                                                               complete
enum class Role : std::uint8_t { Block, Gathered, Partial, Redundant };

/// The grid dimensions that split one axis, outermost first. Each dimension splits the blocks of
/// the one before it. At most two dimensions split an axis. (Two split the channel axis after a
/// convolution whose filters and channels are both split.)
struct Split {
  DimList by;
  /// all block lengths are multiples of the quantum (for example, the channels of a group); only
  /// the last block may be cut
  std::int64_t quantum = 1;
  friend bool operator==(const Split&, const Split&) = default;
};

struct Distribution {
  Shape shape;
  ProcessGrid grid;
  std::array<Split, axis_count> splits;  ///< per tensor axis
  std::array<Role, dim_count> roles{};   ///< per grid dimension; Block only for dims in `splits`
  Ranks ranks{};                         ///< the job's ranks on which the grid lies

  const Split& split(Axis axis) const { return splits[static_cast<int>(axis)]; }
  Role role(Dim dim) const { return roles[static_cast<int>(dim)]; }
  /// The grid's rank that lies on the job's rank `job_rank`; -1 if none does.
  int place(int job_rank) const { return ranks.of_grid(job_rank, grid.ranks()); }
  /// The ranks of the grid that differ from `rank` only along `dims`, as ranks of the job.
  std::vector<int> group(int rank, const DimList& dims) const {
    return ranks.of_job(grid.group(rank, dims));
  }
  /// The interval of a rank's block along an axis.
  Interval owned(Axis axis, int rank) const;
  Region owned(int rank) const;
  /// The interval along an axis of the block with these indices along the grid's dimensions.
  Interval owned(Axis axis, const std::array<int, dim_count>& indices) const;
  /// The gradient's distribution: Gathered and Partial change places.
  Distribution dual() const;
  /// Grid dimensions with this role and more than one part.
  DimList dims_with(Role role) const;
  /// A text for messages: "N:N2 C:F2xC2 | gathered H, redundant R".
  std::string text() const;
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// The regions of one tensor that the ranks of a consumer read. They follow from the blocks of the
/// consumer's iteration space and from its windows. On an axis without a window, the iteration
/// space is the tensor's own axis, or a longer axis that contains it (an input of a concatenation).
struct Needed {
  Shape tensor;                     ///< global shape of the tensor that is read
  Distribution iteration;           ///< blocks of the iteration space, with the roles of `tensor`
  std::array<Window, 3> windows{};  ///< along D, H, W; the default window is the identity
  std::array<Scale, 3> scales{};    ///< along D, H, W; all but the identity replace the window
  /// where the tensor's channels begin on the C axis of the iteration space
  std::int64_t first_channel = 0;
  /// Whether the windows slide over the iteration space, as in a transposed convolution. A block of
  /// the iteration space then needs the tensor's positions whose windows reach the block.
  bool transposed = false;

  /// Whether the tensor continues at its other end. Ranks then read intervals that reach beyond it.
  bool wraps(Axis axis) const { return has_ends(axis, Ends::Wrap); }
  /// Whether positions beyond an end are mirrored at that end.
  bool mirrors(Axis axis) const { return has_ends(axis, Ends::Mirror); }
  /// Returns the interval of the tensor that `positions` of the iteration space read. The interval
  /// may reach beyond the tensor. Its ends ascend with the positions, unless positions are
  /// mirrored.
  Interval unclipped(Axis axis, Interval positions) const;
  /// Returns an interval within the tensor whose ends ascend with the positions. It is part of what
  /// `positions` read, and all of it unless positions are mirrored or wrap around.
  Interval ascending(Axis axis, Interval positions) const;

  /// The interval that a rank reads along an axis, within the tensor unless that wraps around.
  Interval region(Axis axis, int rank) const { return region(axis, iteration.owned(axis, rank)); }
  Region region(int rank) const;
  /// The same for ranks with these block indices.
  Interval region(Axis axis, const std::array<int, dim_count>& indices) const {
    return region(axis, iteration.owned(axis, indices));
  }

  friend bool operator==(const Needed&, const Needed&) = default;

 private:
  bool has_ends(Axis axis, Ends ends) const {
    return is_spatial(axis) && scales[static_cast<std::size_t>(spatial_index(axis))].ends == ends;
  }
  Interval region(Axis axis, Interval positions) const;
};

}  // namespace stratplan
