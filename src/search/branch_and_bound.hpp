#pragma once
// Minimization over tables far too large to fill (tens of thousands of candidates a node): the
// optimum is bracketed.
//
// From below: passes of a dual bound over all candidates (dual_bound.hpp), which rule out those
// whose completions cost more than the best assignment. From above: assignments that follow the
// bounds, then one node at a time over all of its candidates, until neither helps; and the exact
// search on what is left, or the most promising of it.
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"
#include "search/search.hpp"

namespace stratplan {

struct BranchAndBoundOptions {
  double tolerance = 0.001;           ///< the gap at which to stop
  std::size_t most_candidates = 320;  ///< per node, in the exact search
  std::optional<Bytes> memory_limit{};
};

struct BoundedSolution {
  std::vector<int> assignment;  ///< candidate per node
  double cost = 0;              ///< seconds
  double lower_bound = 0;       ///< seconds; no assignment costs less (whatever the memory limit)
  double gap() const { return lower_bound > 0 && cost > lower_bound ? cost / lower_bound - 1 : 0; }
};

/// `known`: assignments to start from; the answer is never worse than any of them that satisfies
/// the limit. `few`: by node, candidates (ascending) among which a good assignment is looked for
/// first; or nothing. Nothing if no assignment was found that satisfies the limit.
std::optional<BoundedSolution> branch_and_bound(const LargeTable& table,
                                                const std::vector<std::vector<int>>& known,
                                                const BranchAndBoundOptions& options = {},
                                                const std::vector<std::vector<int>>& few = {});

/// A good assignment of `few` candidates a node, at least as good as `known`; nothing is proven,
/// and no memory limit applies.
std::vector<int> best_among(const LargeTable& table, const std::vector<std::vector<int>>& few,
                            const std::vector<int>& known);

/// Seconds over a whole assignment.
double cost_of(const LargeTable& table, const std::vector<int>& assignment);
Bytes memory_of(const LargeTable& table, const std::vector<int>& assignment);

}  // namespace stratplan
