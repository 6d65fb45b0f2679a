#pragma once
// Best-first search over partial assignments, from the last eliminated node to the first, each
// bounded from below by what eliminations at one or more prices say about its best completion.
// Without a memory limit and with exact eliminations it walks straight to the optimum; with a limit
// it is a resource-constrained shortest path: of two partial assignments that look the same to the
// remaining nodes, one that costs no less and holds no less memory is dropped (Desrochers and
// Soumis, INFOR 26(3), 1988).
#include <cstdint>
#include <optional>
#include <vector>

#include "search/elimination.hpp"

namespace stratplan {

struct LabelOutcome {
  std::vector<int> assignment;  ///< empty if nothing better than the incumbent was found
  double lower_bound = 0;       ///< seconds: no assignment within the limit costs less
};

/// `bounds`: eliminations of `problem`, the first at price 0. `upper_bound`: seconds of a known
/// assignment; only better ones are looked for. Stops when `labels` partial assignments are held.
LabelOutcome label_search(const Problem& problem, const std::vector<const Elimination*>& bounds,
                          std::optional<std::int64_t> memory_limit, double upper_bound,
                          std::size_t labels);

}  // namespace stratplan
