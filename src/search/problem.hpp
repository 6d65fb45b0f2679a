#pragma once
// What is left of a cost table after pruning, as plain dense numbers, and in what order to
// eliminate it.
#include <cstdint>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Candidates still in the running, per node, ascending.
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
  /// An assignment of this problem in terms of the table.
  std::vector<int> in_table(const std::vector<int>& assignment) const;
};

/// Asks the table for every pair of survivors.
Problem make_problem(const CostTable& table, const Survivors& survivors);

/// Drops candidates that another of the same node can replace at no more cost and memory, whatever
/// the neighbours take. Exact.
Problem without_dominated(const Problem& problem);

/// The node next in order is always the one whose elimination needs the smallest table (the lower
/// index where equal).
std::vector<int> elimination_order(const Problem& problem);

/// The same problem with its nodes renumbered: node i of the result is node order[i]. Pairs are
/// turned to from < to.
Problem reordered(const Problem& problem, const std::vector<int>& order);

}  // namespace stratplan
