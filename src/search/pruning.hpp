#pragma once
// Pruning before most edge costs are requested: a good assignment, and the candidates that cannot
// be in a better one.
#include <optional>
#include <vector>

#include "search/problem.hpp"

namespace stratplan {

struct Incumbent {
  std::vector<int> assignment;  ///< the table's candidates
  double cost = 0;              ///< seconds
};

/// Candidates that fit into the limit if all other nodes take their least memory. If nothing fits,
/// at least one node's list is empty.
Survivors within_memory(const CostTable& table, std::optional<Bytes> memory_limit);

/// Improves one node at a time within the limit, until no change of a single node helps. `start`
/// must satisfy the limit.
Incumbent descend(const CostTable& table, const Survivors& survivors,
                  std::optional<Bytes> memory_limit, std::vector<int> start);

/// Each node in turn takes the candidate that is cheapest given the nodes before it.
std::vector<int> greedy_assignment(const CostTable& table, const Survivors& survivors);

/// The best of a few descents. Requires the result of within_memory() with no empty list.
Incumbent first_incumbent(const CostTable& table, const Survivors& survivors,
                          std::optional<Bytes> memory_limit);

/// Drops candidates whose cheapest completion (least node costs and the edges' bounds) costs more
/// than `upper_bound` seconds.
Survivors below(const CostTable& table, const Survivors& survivors, double upper_bound);

}  // namespace stratplan
