#pragma once
// Lower bounds for the assignments of a large table, by candidate. Messages along a spanning tree
// are exact for the tree. A non-tree edge is bounded by a price for each candidate of either end.
// The two prices of a pair never add up to more than the edge's cost.
//
// The tree comes from a depth-first search. So of the two ends of a non-tree edge, one is an
// ancestor of the other. Bounds rely on this. While a pass changes prices, a bound mixes messages
// from before and after. It stays valid since it never sees the price that rose without the price
// that fell for it.
//
// Each pass is a reparameterization that raises the bound. A share of each candidate's cost above
// the bound moves into a non-tree edge. The candidates at the edge's other end take over the least
// cost that the edge then has. The method is sequential tree-reweighted message passing (V.
// Kolmogorov, Convergent tree-reweighted message passing for energy minimization, IEEE PAMI 28(10),
// 2006). Here it runs on one tree with exact messages, so that every candidate's bound is
// available.
#include <algorithm>
#include <functional>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Tells whether to stop; empty: never.
using Stop = std::function<bool()>;
inline bool says_stop(const Stop& stop) { return stop && stop(); }

class DualBound {
 public:
  /// `table` must outlive this object. A candidate whose bound is `limit` seconds or more is ruled
  /// out permanently. A pass ends early once `stop` says so. Bounds stay valid, but no further pass
  /// may follow.
  DualBound(const LargeTable& table, double limit, Stop stop = {});
  /// Restricts the candidates of each node to `few` (ascending). To be called before the first
  /// pass.
  void restrict_to(const std::vector<std::vector<int>>& few);
  /// Sets a guess for the first pass. Until it has computed bounds, nodes outside a node's subtree
  /// are assumed to cost as much as in `assignment`. A close guess makes the first passes fast. A
  /// wrong guess makes their bounds less tight, but never invalid. To be called before the first
  /// pass.
  void expect(const std::vector<int>& assignment);
  /// Lowers the limit to the cost of an assignment that has been found. Does nothing if the limit
  /// is lower already.
  void lower_limit(double limit) { limit_ = std::min(limit_, limit); }
  /// One ascent, from the leaves to the roots, and one descent make a pass. The members below
  /// require at least one pass, except for bound(): an ascent raises it even if it ends early.
  void ascend();
  void descend();

  /// Whether the last pass was rough. The next one may then help more than it did.
  bool was_rough() const { return rough_; }
  /// A lower bound of all assignments, or the limit if no assignment costs less than the limit.
  double bound() const { return bound_; }
  /// By candidate: a lower bound of all assignments with this candidate; infinite if it is ruled
  /// out.
  const std::vector<double>& bounds(int node) const {
    return completion_[static_cast<std::size_t>(node)];
  }
  /// The number of remaining candidates at the node that has the most.
  std::size_t most_survivors() const;
  /// Returns an assignment. Each node in turn takes the candidate that is cheapest by the bounds,
  /// given the nodes before it.
  std::vector<int> follow();

 private:
  using Costs = std::vector<double>;
  struct Beside {  ///< a non-tree edge; `low` is an ancestor of `high`
    int edge, low, high;
    Costs at_low, at_high;  ///< prices by candidate
  };
  void span();
  Costs through(int edge, int from_node, const Costs& costs, const Costs& limits) const;
  void gather(int node);
  double other_trees(int node) const;
  Costs without(int child) const;
  void settle(int node);
  void lend(Beside& beside, bool upward, double share);
  void lend_all(const std::vector<int>& besides, bool upward);
  void count_reached(std::size_t place);
  Costs room(int node, const Costs& costs) const;

  const LargeTable& table_;

  double limit_, bound_ = 0;
  Stop stop_;
  int descents_ = 0;
  /// whether the pass's messages are rough: the first pass rules out most candidates with such ones
  bool rough_ = true;
  std::vector<int> order_;  ///< the nodes, each behind its parent
  std::vector<int> parent_, parent_edge_;
  std::vector<std::vector<int>> children_, besides_of_low_, besides_of_high_;
  std::vector<Beside> besides_;
  std::vector<Costs> own_;        ///< by node: costs plus prices; infinite if ruled out
  std::vector<Costs> below_;      ///< `own_` plus the messages of the children
  std::vector<Costs> to_parent_;  ///< by node: message to its parent
  std::vector<Costs> from_parent_;
  std::vector<Costs> completion_;
  std::vector<int> root_;      ///< by node: root of its tree
  std::vector<double> least_;  ///< by root: lower bound of its tree
};

}  // namespace stratplan
