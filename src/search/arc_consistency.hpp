#pragma once
// Rules out candidates that cannot be in a best assignment, by soft arc consistency (Cooper et al.,
// Artificial Intelligence 174, 2010). Costs move from a node into its edges, and from each edge to
// the node at its other end. Every assignment keeps its cost, and no cost becomes negative. The
// least cost among a node's candidates moves into one constant.
//
// The constant is then a lower bound for all assignments. The constant plus the remaining cost of a
// candidate is a lower bound for all assignments with that candidate. One sweep forward and one
// back over the nodes is exact on chains. Cycles take some more sweeps and leave a few candidates.
// Sweeps miss some costs of cycles. These costs are found at joints: nodes such that no edge
// connects an earlier node with a later one. There one candidate is fixed at a time (singleton
// consistency).
#include <optional>
#include <vector>

#include "search/pruning.hpp"

namespace stratplan {

struct Consistency {
  Survivors survivors;     ///< include all candidates of assignments as good as the incumbent
  Incumbent incumbent;     ///< costs no more than the given incumbent
  double lower_bound = 0;  ///< seconds: no assignment costs less
};

/// Requires a table with edges_at_hand(). No list of `survivors` may be empty, and the lists must
/// contain the incumbent's candidates.
Consistency make_consistent(const CostTable& table, Survivors survivors,
                            std::optional<Bytes> memory_limit, Incumbent incumbent);

}  // namespace stratplan
