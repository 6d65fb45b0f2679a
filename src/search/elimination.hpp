#pragma once
// Minimization by eliminating one node after the other. Node v's bucket holds every table that
// mentions v and later nodes only. Taking the minimum over v leaves a message: a table over the
// bucket's other nodes. The message goes into the bucket of the earliest of these nodes. On
// networks of small treewidth (a ResNet's is 2) messages stay small and the minimum is exact. If a
// message would exceed the size limit, the bucket is split and each part is minimized on its own.
// The result is then a lower bound (Dechter and Rish, Mini-buckets, J. ACM 50(2), 2003).
#include <cstddef>
#include <deque>
#include <vector>

#include "search/problem.hpp"

namespace stratplan {

/// A table over the candidates of some nodes (`scope`, ascending). It is row-major: the candidates
/// of the last node are contiguous. A table over no nodes is one number.
struct Factor {
  std::vector<int> scope;
  std::vector<std::size_t> strides;
  Entries values;
};

/// Moves the pairs of a problem into factors. Eliminations at different prices share them.
std::vector<Factor> take_pair_factors(Problem& problem);

class Elimination {
 public:
  /// Minimizes cost + price * memory (price in seconds per byte) over a problem whose nodes are
  /// numbered in the order of elimination. `problem` and `pairs` must outlive this object.
  Elimination(const Problem& problem, const std::vector<Factor>& pairs, double price,
              std::size_t table_entries);

  /// A lower bound of cost + price * memory over all assignments. If exact(), decode() attains it.
  double bound() const { return bound_; }
  bool exact() const { return exact_; }
  double price() const { return price_; }

  /// Returns, by candidate of `node`, the rise of the lower bound if `node` takes this candidate,
  /// given the candidates of all later nodes in `assignment`. Rises are not negative (up to
  /// rounding). The least rise is 0 if exact(). bound() plus the rises of all nodes, from last to
  /// first, is the assignment's own cost + price * memory.
  std::vector<double> rises(int node, const std::vector<int>& assignment) const;
  /// Returns an assignment. From last to first, each node takes the candidate with the least rise
  /// (the lower index on a tie).
  std::vector<int> decode() const;
  /// Returns the later nodes on which rises(node, .) depends, ascending.
  std::vector<int> scope(int node) const;

 private:
  void eliminate(int node, std::size_t table_entries);
  void place(const Factor* factor);
  Factor minimum_over(int node, const std::vector<const Factor*>& factors);

  const Problem& problem_;
  double price_;
  double bound_ = 0;
  bool exact_ = true;
  std::vector<double> constants_;  // of one block of a message; kept from node to node
  std::vector<Factor> unary_;
  std::deque<Factor> messages_;  // a deque, so that addresses stay valid
  // per node: the factors in which this node is the earliest
  std::vector<std::vector<const Factor*>> buckets_;
  std::vector<std::vector<const Factor*>> sent_;  // per node: messages of its elimination
};

}  // namespace stratplan
