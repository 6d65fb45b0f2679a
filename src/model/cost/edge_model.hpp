#pragma once
// What an edge costs in closed form: how much of what a rank needs lies on itself, in its node and elsewhere, from the blocks of both distributions alone;
// never a list of messages. Of a few telling ranks the one with most to receive counts.
//
// Approximations beside the lowered program, measured in tests/model/cost/edge_model_test.cpp: a rank sends as many messages as it receives, and all copies of
// one direction have the same size.
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "model/cost/step_cost.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// The rank that is the last along those digits of its number, as prime factors of the levels' ranks from the outermost, for which `last(place)` is true, and the
/// first along all others.
int rank_by_digits(const Topology& topology, const std::function<bool(std::size_t)>& last);

/// Ranks among which, for any two places of a digit in a rank number, one has the first and not the last index in one place, and the last in the other: whatever
/// two grids disagree on, some of these see it. A number of ranks that grows with the logarithm of the number of digits.
std::vector<int> telling_ranks_of(const Topology& topology);

/// Everything of one end of an edge that its cost depends on, on the telling ranks.
class EdgeEnd {
 public:
  /// Blocks of blocks along an axis, first and last of each.
  struct BlockRange {
    std::pair<int, int> outer{0, 0}, inner{0, 0};
  };
  struct Place {
    Region own;                                        ///< what the rank holds or needs
    std::array<BlockRange, axis_count> node_blocks{};  ///< of the ranks of its innermost group
  };
  /// `innermost`: ranks of the innermost level, consecutive.
  EdgeEnd(Needed blocks, const std::vector<int>& ranks, int innermost);
  /// A home distribution is needed by itself.
  EdgeEnd(const Distribution& home, const std::vector<int>& ranks, int innermost);

  const Place& at(std::size_t telling) const { return places_[telling]; }
  /// Blocks along an axis that overlap `wanted`, and their overlaps added up.
  struct Overlap {
    std::int64_t blocks = 0, elements = 0;
  };
  Overlap overlap(Axis axis, Interval wanted) const;
  /// Of some of the blocks.
  Overlap overlap(Axis axis, Interval wanted, const BlockRange& among) const;
  int terms = 1;         ///< ranks that contribute to the same block's gradient
  int terms_inside = 1;  ///< of these, in one innermost group

 private:
  struct AxisBlocks {
    std::int64_t extent = 1, parts = 1, inner_parts = 1;
    bool windowed = false;
    std::vector<Interval> intervals;  ///< of windowed blocks, ascending
  };
  void place(const std::vector<int>& ranks, int innermost);
  Overlap overlap_of_run(Axis axis, Interval wanted, std::int64_t first, std::int64_t last) const;
  Needed blocks_;
  std::array<AxisBlocks, axis_count> axes_;
  std::vector<Place> places_;
};

class EdgeModel {
 public:
  /// `ranks` of a job on `machine`, which must outlive this.
  EdgeModel(int ranks, const MachineProfile& machine);

  const std::vector<int>& telling() const { return telling_; }
  int innermost() const { return innermost_; }
  /// One pass in each direction.
  Seconds cost(const EdgeEnd& home, const EdgeEnd& needed) const;

  /// One end of an edge, whatever the place of its digits: parts along each axis of the tensor, and ranks that contribute to the same block's gradient.
  struct Kind {
    std::array<double, axis_count> parts{1, 1, 1, 1, 1};
    double terms = 1;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  /// What an edge costs at least where the ends' digits differ, for a tensor of so many elements. A rank receives at least as many messages as blocks overlap
  /// what it holds, less its own, and no more of them from its node than that has other ranks; some rank lacks half of the smaller part.
  Seconds least(double elements, const Kind& home, const Kind& needed) const;
  /// What the gradients of a tensor that `terms` ranks each use whole cost, so many of them in each innermost group, where each holds `elements`.
  Seconds gathering(double elements, int terms, int terms_inside) const;
  /// The same of `messages` with so many elements in all, of one direction.
  Seconds least(double messages, double elements) const;

 private:
  struct Received {
    std::int64_t messages = 0, elements = 0;
  };
  Seconds direction(const std::array<Received, 3>& by_distance) const;

  const MachineProfile& machine_;
  Topology placement_;
  std::vector<int> telling_;
  int innermost_ = 1;
  std::size_t outer_level_ = 0, inner_level_ = 0;
  /// Floors: seconds per message and per element, within the innermost level and across; of a copy, whatever its size, and per element.
  struct Rates {
    double message = 0, element = 0;
  };
  Rates inside_, across_, copy_;
};

}  // namespace stratplan
