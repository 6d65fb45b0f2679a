#pragma once
// Exact minimization of node plus edge costs over one candidate per node, subject to a limit on the
// sum of memory. The search takes numbers and returns indices.
//
// The parts, one file each:
//   pruning          drops candidates that cannot be in a best assignment, without most edge costs
//   arc_consistency  drops such candidates by edge costs, if the table has these at hand
//   elimination      minimizes over the remaining candidates; eliminates one node after the other
//   lazy_search      eliminates with lower bounds of edge costs, and requests exact edge costs only
//                    where they matter
//   label_search     best-first search guided by eliminations, if a memory limit binds or tables
//                    would grow too large; ends with a proof or with a gap
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

struct SearchResult {
  std::vector<int> assignment;  ///< candidate per node
  Seconds cost{};
  Seconds lower_bound{};  ///< no assignment within the memory limit costs less
  Bytes memory{};         ///< sum of node_memory
  bool optimal() const { return cost.value <= lower_bound.value * (1 + 1e-12); }
  double gap() const { return lower_bound.value > 0 ? cost.value / lower_bound.value - 1 : 0; }
};

/// Resources that the search may use before it accepts a gap.
struct SearchLimits {
  /// most entries of an intermediate table, 8 bytes each
  std::size_t table_entries = std::size_t{1} << 24;
  /// most partial assignments that the best-first search keeps, about 100 bytes each
  std::size_t labels = std::size_t{1} << 20;
};

/// Costs must be finite and not negative. Equal tables give equal results: every tie goes to the
/// lower index. Returns nothing if no assignment satisfies the limit. The smallest limit that can
/// be satisfied is least_memory().
std::optional<SearchResult> search(const CostTable& table, std::optional<Bytes> memory_limit = {},
                                   const SearchLimits& limits = {});
Bytes least_memory(const CostTable& table);
/// Tries every assignment. For tests.
std::optional<SearchResult> search_exhaustively(const CostTable& table,
                                                std::optional<Bytes> memory_limit = {});

/// The cost of a whole assignment, summed over nodes and edges, and its memory, summed over nodes.
Seconds cost_of(const CostTable& table, const std::vector<int>& assignment);
Bytes memory_of(const CostTable& table, const std::vector<int>& assignment);

}  // namespace stratplan
