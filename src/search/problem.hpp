#pragma once
// The part of a cost table that remains after pruning, as dense numbers, and the order in which to
// eliminate its nodes.
#include <cstdint>
#include <vector>

#include "search/cost_table.hpp"
#include "search/numbers.hpp"

namespace stratplan {

/// Indices of the remaining candidates, per node, ascending.
using Survivors = std::vector<std::vector<int>>;

struct Problem {
  struct Pair {
    int from = 0;
    int to = 0;    ///< from < to
    Entries cost;  ///< seconds, row-major over the candidates of (from, to)
  };
  std::vector<int> origin;                        ///< per node: its index in the table
  Survivors candidates;                           ///< per node: table indices of its candidates
  std::vector<std::vector<double>> cost;          ///< seconds, per node and candidate
  std::vector<std::vector<std::int64_t>> memory;  ///< bytes, per node and candidate
  std::vector<Pair> pairs;

  int nodes() const { return static_cast<int>(origin.size()); }
  int size(int node) const {
    return static_cast<int>(candidates[static_cast<std::size_t>(node)].size());
  }
  /// Converts an assignment of this problem to the table's nodes and candidates.
  std::vector<int> in_table(const std::vector<int>& assignment) const;
};

/// Requests the costs of all survivors, and of all their pairs along edges, from the table.
Problem make_problem(const CostTable& table, const Survivors& survivors);

/// Drops candidates that another candidate of the same node can always replace at no more cost or
/// memory. The optimum stays the same.
Problem without_dominated(Problem problem);

/// Returns the order in which to eliminate the nodes. The next node is always the one whose
/// elimination needs the smallest table; on a tie, the one with the lower index.
std::vector<int> elimination_order(const Problem& problem);

/// Whether an elimination of all nodes, in that order, takes no longer than reading all edge costs
/// about 20 times. Tables that can rule out candidates need as many reads.
bool elimination_is_cheap(const CostTable& table, const Survivors& survivors);

/// Returns the problem with its nodes renumbered: node i of the result is node order[i] of
/// `problem`. Pairs are transposed where needed, so that from < to.
Problem reordered(Problem problem, const std::vector<int>& order);

}  // namespace stratplan
