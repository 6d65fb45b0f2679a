#pragma once
// What can be said before asking for most edge costs: a good assignment, and which candidates
// cannot be in a better one.
#include <optional>
#include <vector>

#include "search/problem.hpp"

namespace stratplan {

struct Incumbent {
  std::vector<int> assignment;  ///< the table's candidates
  double cost = 0;              ///< seconds
};

/// Candidates that fit into the limit if all other nodes take their least memory. Some node's list
/// is empty if nothing fits.
Survivors within_memory(const CostTable& table, std::optional<Bytes> memory_limit);

/// Improves one node at a time until no change of a single node helps (and keeps within the limit,
/// as the start must be).
Incumbent descend(const CostTable& table, const Survivors& survivors,
                  std::optional<Bytes> memory_limit, std::vector<int> start);

/// Each node in turn takes what is cheapest next to those before it.
std::vector<int> greedy_assignment(const CostTable& table, const Survivors& survivors);

/// The best of a few descents. Requires survivors of within_memory, none empty.
Incumbent first_incumbent(const CostTable& table, const Survivors& survivors,
                          std::optional<Bytes> memory_limit);

/// Drops candidates with which even the cheapest rest (least node costs and the edges' bounds)
/// costs more than `upper_bound` seconds.
Survivors below(const CostTable& table, const Survivors& survivors, double upper_bound);

}  // namespace stratplan
