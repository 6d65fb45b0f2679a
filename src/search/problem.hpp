#pragma once
// The part of a cost table that remains after pruning, as dense numbers, and the order in which to
// eliminate its nodes.
#include <cstdint>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Remaining candidates, per node, ascending.
using Survivors = std::vector<std::vector<int>>;

struct Problem {
  struct Pair {
    int from = 0;
    int to = 0;                ///< from < to
    std::vector<double> cost;  ///< row-major over (from, to)
  };
  std::vector<int> origin;                        ///< the node's index in the table
  Survivors candidates;                           ///< the candidates' indices in the table
  std::vector<std::vector<double>> cost;          ///< seconds, per node and candidate
  std::vector<std::vector<std::int64_t>> memory;  ///< bytes, per node and candidate
  std::vector<Pair> pairs;

  int nodes() const { return static_cast<int>(origin.size()); }
  int size(int node) const {
    return static_cast<int>(candidates[static_cast<std::size_t>(node)].size());
  }
  /// Converts an assignment of this problem to the table's candidates.
  std::vector<int> in_table(const std::vector<int>& assignment) const;
};

/// Requests the cost of every pair of survivors from the table.
Problem make_problem(const CostTable& table, const Survivors& survivors);

/// Drops candidates that another candidate of the same node can always replace without more cost or
/// memory. Exact.
Problem without_dominated(const Problem& problem);

/// Each next node is the one whose elimination needs the smallest table (the lower index on a tie).
std::vector<int> elimination_order(const Problem& problem);

/// The same problem with its nodes renumbered: node i of the result is node order[i]. Pairs are
/// turned to from < to.
Problem reordered(const Problem& problem, const std::vector<int>& order);

}  // namespace stratplan
