#pragma once
// Best-first search over partial assignments, from the last eliminated node to the first.
// Eliminations at one or more prices give a lower bound of the best completion of each partial
// assignment. Without a memory limit and with exact eliminations the search walks straight to the
// optimum.
//
// With a limit it is a resource-constrained shortest path. Two partial assignments may look the
// same to the remaining nodes. One that costs no less and holds no less memory than the other is
// then dropped (Desrochers and Soumis, INFOR 26(3), 1988).
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
/// assignment; the search looks only for better ones. It stops when `labels` partial assignments
/// are held.
LabelOutcome label_search(const Problem& problem, const std::vector<const Elimination*>& bounds,
                          std::optional<std::int64_t> memory_limit, double upper_bound,
                          std::size_t labels);

}  // namespace stratplan
