#pragma once
// Exact minimization of node plus edge costs over one candidate per node, subject to a sum of memory.
#include <optional>
#include <vector>

#include "model/cost/cost_table.hpp"

namespace stratplan {

struct SearchResult {
  std::vector<int> assignment;  ///< candidate per node
  Seconds cost{};
  Seconds lower_bound{};        ///< no assignment within the memory limit costs less
  Bytes memory{};               ///< sum of node_memory
  bool optimal() const { return cost.value <= lower_bound.value * (1 + 1e-12); }
  double gap() const { return lower_bound.value > 0 ? cost.value / lower_bound.value - 1 : 0; }
};

/// Nothing if no assignment satisfies the limit; then least_memory() says what would.
std::optional<SearchResult> search(const CostTable& table, std::optional<Bytes> memory_limit = {});
Bytes least_memory(const CostTable& table);
/// Tries every assignment: the tests' judge.
std::optional<SearchResult> search_exhaustively(const CostTable& table, std::optional<Bytes> memory_limit = {});

}  // namespace stratplan
