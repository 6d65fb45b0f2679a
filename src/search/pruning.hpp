#pragma once
// Pruning before most edge costs are requested. It finds a good assignment, and drops candidates
// that cannot be in a better one.
#include <optional>
#include <vector>

#include "search/problem.hpp"

namespace stratplan {

struct Incumbent {
  std::vector<int> assignment;  ///< candidate per node of the table
  double cost = 0;              ///< seconds
};

/// Returns the candidates that fit into the limit if all other nodes take their least memory. If no
/// assignment fits, at least one node's list is empty.
Survivors within_memory(const CostTable& table, std::optional<Bytes> memory_limit);

/// Improves `start` one node at a time within the limit, until no change of a single node helps, or
/// after 20 sweeps. `start` must satisfy the limit.
Incumbent descend(const CostTable& table, const Survivors& survivors,
                  std::optional<Bytes> memory_limit, std::vector<int> start);

/// Each node in turn takes the candidate that is cheapest given the nodes before it.
std::vector<int> greedy_assignment(const CostTable& table, const Survivors& survivors);

/// Returns the best result of a few descents. `survivors`: the result of within_memory(); no list
/// may be empty.
Incumbent first_incumbent(const CostTable& table, const Survivors& survivors,
                          std::optional<Bytes> memory_limit);

/// Drops candidates that cost more than `upper_bound` seconds together with the least costs of all
/// other nodes and the bounds of all edges.
Survivors below(const CostTable& table, const Survivors& survivors, double upper_bound);

}  // namespace stratplan
