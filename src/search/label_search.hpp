#pragma once
// Best-first search over partial assignments, from the last eliminated node to the first.
// Eliminations at one or more prices give a lower bound of the best completion of each partial
// assignment. Without a memory limit and with exact eliminations the search walks straight to the
// optimum.
//
// With a memory limit the search solves a resource-constrained shortest path problem. Partial
// assignments are interchangeable if they agree on all nodes that still matter to unassigned nodes.
// The search drops a partial assignment if an interchangeable one costs no more and needs no more
// memory (Desrochers and Soumis, INFOR 26(3), 1988).
#include <cstdint>
#include <optional>
#include <vector>

#include "search/elimination.hpp"

namespace stratplan {

struct LabelOutcome {
  std::vector<int> assignment;  ///< empty if nothing better than the incumbent was found
  double lower_bound = 0;       ///< seconds: no assignment within the limit costs less
};

/// `bounds`: eliminations of `problem`, the first at price 0. `memory_limit`: bytes. `upper_bound`:
/// cost of a known assignment in seconds; the search looks only for cheaper ones. The search stops
/// when it holds `labels` partial assignments.
LabelOutcome label_search(const Problem& problem, const std::vector<const Elimination*>& bounds,
                          std::optional<std::int64_t> memory_limit, double upper_bound,
                          std::size_t labels);

}  // namespace stratplan
