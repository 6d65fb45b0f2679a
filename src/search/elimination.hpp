#pragma once
// Minimization by eliminating one node after the other. Node v's bucket holds every table that
// mentions v and later nodes only. Taking the minimum over v leaves a table over the other nodes, a
// message. The message goes into the bucket of the earliest of these nodes. On networks of small
// treewidth (a ResNet's is 2) messages stay small and the minimum is exact. If a message would
// exceed the size limit, the bucket is split and each part is minimized on its own. The result is
// then a lower bound (Dechter and Rish, Mini-buckets, J. ACM 50(2), 2003).
#include <cstddef>
#include <deque>
#include <vector>

#include "search/problem.hpp"

namespace stratplan {

/// A table over some nodes, ascending, row-major: the last node is contiguous. A table over no
/// nodes is one number.
struct Factor {
  std::vector<int> scope;
  std::vector<std::size_t> strides;
  std::vector<double> values;
};

/// The pairs of a problem as factors, shared by the eliminations at different prices.
std::vector<Factor> pair_factors(const Problem& problem);

class Elimination {
 public:
  /// Minimizes cost + price * memory (price in seconds per byte) over a problem whose nodes are
  /// numbered in the order of elimination. Keeps references to the arguments.
  Elimination(const Problem& problem, const std::vector<Factor>& pairs, double price,
              std::size_t table_entries);

  /// A lower bound of all assignments; decode() attains it if exact().
  double bound() const { return bound_; }
  bool exact() const { return exact_; }
  double price() const { return price_; }

  /// The rise of the lower bound when `node` takes each of its candidates, given the candidates of
  /// all later nodes in `assignment`. Rises are not negative (up to rounding); the least is 0 if
  /// exact. bound() plus the rises along the nodes from last to first is the assignment's own cost.
  std::vector<double> rises(int node, const std::vector<int>& assignment) const;
  /// From last to first, each node takes the candidate with the least rise (the lower index on a
  /// tie).
  std::vector<int> decode() const;
  /// Later nodes on which rises(node, .) depends, ascending.
  std::vector<int> scope(int node) const;

 private:
  void eliminate(int node, std::size_t table_entries);
  void place(const Factor* factor);
  Factor minimum_over(int node, const std::vector<const Factor*>& factors) const;

  const Problem& problem_;
  double price_;
  double bound_ = 0;
  bool exact_ = true;
  std::vector<Factor> unary_;
  std::deque<Factor> messages_;  // stable addresses
  // per node: the factors that it is minimized over
  std::vector<std::vector<const Factor*>> buckets_;
  std::vector<std::vector<const Factor*>> sent_;  // per node: the messages that it sent
};

}  // namespace stratplan
