#pragma once
// Lower bounds of the costs of collectives over groups of which only sizes are known.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "model/cost/collective_cost.hpp"

namespace stratplan {

class GroupRates {
 public:
  /// `type`: of the elements that the collectives move. `ranks`: the number of ranks in the job.
  /// `none`: there are no collectives, so all bounds are infinite.
  GroupRates(int ranks, const MachineProfile& machine, DataType type, bool none = false);

  /// Returns a lower bound, in seconds, of a collective that moves `elements` (those of the longer
  /// buffer). All ranks of the job form groups of `members` ranks, of which at most `near` lie in
  /// one innermost group. The result is infinity if no such groups divide the ranks.
  float seconds(Collective op, float members, float near, float elements) const;
  /// Returns a lower bound of an all-gather of tiles over groups in which each tile has at least 2
  /// and at most `copies` holders, near to each other.
  float gather_together(float tiles, float copies, float elements) const;

 private:
  /// The least over all places that a group of one size can have: the time of an empty collective,
  /// and the additional time per element of a long one. The estimates grow less and less steeply
  /// with the elements, so their sum is a lower bound.
  struct Line {
    float start = std::numeric_limits<float>::infinity();
    float element = std::numeric_limits<float>::infinity();
  };
  using Lines = std::array<Line, collective_count>;
  static float seconds(const Line& line, float elements) {
    return line.start + elements * line.element;
  }
  /// `within`: number of ranks in the innermost group that count, at least 1.
  std::size_t place(int row, float within) const {
    return static_cast<std::size_t>(
        row + static_cast<int>(std::clamp(within, 1.0F, static_cast<float>(innermost_))) - 1);
  }
  void add_together(int ranks);
  void add_shapes(int members, std::size_t level, GroupShape shape, const Topology& placement,
                  const MachineProfile& machine, DataType type);

  int innermost_ = 1;
  std::vector<int> row_of_;   ///< by number of members: index of the first entry in `lines_`; or -1
  std::vector<Lines> lines_;  ///< rows with an entry per number of near members, from 1
  std::vector<Line> together_;  ///< rows with an entry per number of copies, as in `lines_`
};

inline float GroupRates::seconds(Collective op, float members, float near, float elements) const {
  const int row = row_of_[static_cast<std::size_t>(members)];
  if (row < 0) return std::numeric_limits<float>::infinity();
  return seconds(lines_[place(row, near)][static_cast<std::size_t>(op)], elements);
}

inline float GroupRates::gather_together(float tiles, float copies, float elements) const {
  const int row = row_of_[static_cast<std::size_t>(tiles)];
  if (row < 0) return std::numeric_limits<float>::infinity();
  return seconds(together_[place(row, copies)], elements);
}

}  // namespace stratplan
