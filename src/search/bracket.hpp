#pragma once
// Minimization over tables far too large to fill (tens of thousands of candidates a node): the optimum is bracketed.
//
// From below: messages over a spanning tree, in which each edge either keeps a label or changes it at the least that a change costs; what a candidate's best
// completion costs at least follows for all candidates at once, in time proportional to their number. From above: the exact search on the most promising
// candidates of each node, then one node at a time over all of its candidates, until neither helps. Candidates whose completions cost more than the best
// assignment need not be looked at; the more promising are taken in until the bracket is closed or nothing is left to take in.
#include <cstddef>
#include <optional>
#include <vector>

#include "model/cost/cost_table.hpp"
#include "search/search.hpp"

namespace stratplan {

struct BracketOptions {
  double tolerance = 0.005;           ///< the gap at which to stop
  std::size_t first_candidates = 40;  ///< per node, in the first exact search
  std::size_t most_candidates = 320;  ///< per node, in the last
  std::optional<Bytes> memory_limit{};
};

struct Bracket {
  std::vector<int> assignment;  ///< candidate per node
  double cost = 0;              ///< seconds
  double lower_bound = 0;       ///< seconds; no assignment costs less (whatever the memory limit)
  double gap() const { return lower_bound > 0 && cost > lower_bound ? cost / lower_bound - 1 : 0; }
};

/// `known`: assignments to start from; the answer is never worse than any of them that satisfies the limit. Nothing if no assignment was found that does.
std::optional<Bracket> bracket(const WideTable& table, const std::vector<std::vector<int>>& known, const BracketOptions& options = {});

/// Seconds over a whole assignment.
double cost_of(const WideTable& table, const std::vector<int>& assignment);

/// By node and candidate: what the best assignment with this candidate costs at least; above `limit` it may be anything above.
std::vector<std::vector<double>> completion_bounds(const WideTable& table, double limit);

}  // namespace stratplan
