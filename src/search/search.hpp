#pragma once
// Exact minimization of node plus edge costs over one candidate per node, subject to a sum of
// memory. Numbers in, indices out.
//
// How (one file each): candidates that cannot be in a best assignment are dropped, without looking
// at most edges (pruning), or by looking at those that are at hand (arc_consistency); what is left
// is minimized by eliminating one node after the other (elimination), at first with optimistic
// edges of which only those are asked for that matter (lazy_search); where a memory limit binds, or
// tables would grow too large, a best-first search is guided by bounds from such eliminations
// (label_search) and ends with a proof or with an honest gap.
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

/// What the search may use up before it settles for a gap.
struct SearchLimits {
  std::size_t table_entries = std::size_t{1} << 24;  ///< of one intermediate table, 8 bytes each
  std::size_t labels =
      std::size_t{1}
      << 20;  ///< partial assignments kept by the best-first search, about 100 bytes each
};

/// Costs must be finite and not negative. Equal tables give equal answers: every tie on the way
/// goes to the lower index. Nothing if no assignment satisfies the limit; then least_memory() says
/// what would.
std::optional<SearchResult> search(const CostTable& table, std::optional<Bytes> memory_limit = {},
                                   const SearchLimits& limits = {});
Bytes least_memory(const CostTable& table);
/// Tries every assignment: the tests' judge.
std::optional<SearchResult> search_exhaustively(const CostTable& table,
                                                std::optional<Bytes> memory_limit = {});

/// Sums over a whole assignment.
Seconds cost_of(const CostTable& table, const std::vector<int>& assignment);
Bytes memory_of(const CostTable& table, const std::vector<int>& assignment);

}  // namespace stratplan
