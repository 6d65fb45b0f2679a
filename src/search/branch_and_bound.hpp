#pragma once
// Branch and bound over tables that are too large to fill (tens of thousands of candidates per
// node).
//
// Lower bounds come from passes of a dual bound over all candidates (dual_bound.hpp). The passes
// rule out candidates whose completions cost more than the best assignment. Upper bounds come from
// assignments that follow the lower bounds. Each such assignment is improved one node at a time,
// over all candidates of the node. When further passes no longer help, the exact search runs on the
// remaining candidates, or on the most promising of them.
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"
#include "search/dual_bound.hpp"
#include "search/search.hpp"

namespace stratplan {

struct BranchAndBoundOptions {
  double tolerance = 0.001;           ///< gap at which the search stops
  std::size_t most_candidates = 320;  ///< per node, in the exact search
  std::optional<Bytes> memory_limit{};
  /// Once this returns true, no further bounds are computed, and the best known assignment is the
  /// answer.
  Stop stop{};
};

struct BoundedSolution {
  std::vector<int> assignment;  ///< candidate per node
  double cost = 0;              ///< seconds
  double lower_bound = 0;       ///< seconds; no assignment within the memory limit costs less
  double gap() const { return lower_bound > 0 && cost > lower_bound ? cost / lower_bound - 1 : 0; }
};

/// `known`: assignments to start from. The result costs no more than any known assignment that
/// satisfies the memory limit. `few`: by node, the candidates (ascending) among which to look for a
/// good assignment first; may be empty. Returns nothing if no assignment was found that satisfies
/// the limit.
std::optional<BoundedSolution> branch_and_bound(const LargeTable& table,
                                                const std::vector<std::vector<int>>& known,
                                                const BranchAndBoundOptions& options = {},
                                                const std::vector<std::vector<int>>& few = {});

/// Returns an assignment that costs no more than `known`, from a search among a few candidates per
/// node. No lower bound is proven, and no memory limit applies. Narrows `few` to the most promising
/// candidates of each node.
std::vector<int> best_among(const LargeTable& table, std::vector<std::vector<int>>& few,
                            const std::vector<int>& known);

/// The cost of a whole assignment, in seconds.
double cost_of(const LargeTable& table, const std::vector<int>& assignment);
Bytes memory_of(const LargeTable& table, const std::vector<int>& assignment);

}  // namespace stratplan
