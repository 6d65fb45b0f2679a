#pragma once
// What assignments of a wide table cost at least, by candidate. Messages along a spanning tree are
// exact for the tree; an edge beside it is covered from below by a price for each candidate of
// either end that together never exceed the edge's cost, and each pass moves these prices so that
// the bound grows: what a candidate costs beyond the bound is lent to the edge, and the other end
// is charged what the edge then costs at least. Source: the scheme of sequential tree-reweighted
// message passing, V. Kolmogorov, Convergent tree-reweighted message passing for energy
// minimization, IEEE PAMI 28(10), 2006; here on one tree with exact messages, so that each
// candidate's bound is at hand.
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

class DualBound {
 public:
  /// `table` must outlive this. Candidates whose completions cost `limit` or more are ruled out for
  /// good.
  DualBound(const LargeTable& table, double limit);
  /// Before the first pass: by node, the only candidates to take part (ascending).
  void restrict_to(const std::vector<std::vector<int>>& few);
  /// Before the first pass: of the nodes outside a node's subtree no better is expected than what
  /// they cost in `assignment`. A guess that is near makes the first passes fast; one that is wrong
  /// makes them less tight, not wrong.
  void expect(const std::vector<int>& assignment);
  /// Before the first pass, after what is expected: an ascent and a descent with what edges cost
  /// roughly, at least, so that exact ones have fewer candidates.
  void sketch();
  /// A better assignment is known.
  void lower_limit(double limit) { limit_ = limit; }
  /// From the last node to the first, or back; one of each, in this order, before anything below is
  /// asked.
  void ascend();
  void descend();

  /// No assignment costs less, or none below the limit.
  double bound() const { return bound_; }
  /// What the best assignment with this candidate costs at least; infinite if ruled out.
  const std::vector<double>& bounds(int node) const {
    return completion_[static_cast<std::size_t>(node)];
  }
  /// Of the node that has most.
  std::size_t most_survivors() const;
  /// An assignment that follows the bounds, node by node.
  std::vector<int> follow();

 private:
  using Costs = std::vector<double>;
  struct Beside {  ///< an edge that is not in the tree
    int edge, low, high;
    Costs at_low, at_high;  ///< prices by candidate
  };
  Costs through(int edge, int from_node, const Costs& costs, const Costs& limits) const;
  void gather(int node);
  double other_trees(int node) const;
  Costs without(int child) const;
  void settle(int node);
  void lend(Beside& beside, bool upward, double share);
  void lend_all(const std::vector<int>& besides, bool upward);
  Costs room(int node, const Costs& costs) const;

  const LargeTable& table_;
  double limit_, bound_ = 0;
  bool descended_ = false, roughly_ = false;
  std::vector<int> parent_, parent_edge_;
  std::vector<std::vector<int>> children_, besides_of_low_, besides_of_high_;
  std::vector<Beside> besides_;
  std::vector<Costs> own_;        ///< by node: costs and prices; infinite if ruled out
  std::vector<Costs> below_;      ///< with all that the children say
  std::vector<Costs> to_parent_;  ///< messages
  std::vector<Costs> from_parent_;
  std::vector<Costs> completion_;
  std::vector<int> root_;      ///< by node
  std::vector<double> least_;  ///< by root: of its tree
};

}  // namespace stratplan
