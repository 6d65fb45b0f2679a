#pragma once
// Which candidates can be in a best assignment at all, said by moving costs about: costs of nodes
// are moved into edges, and out of them at their other ends, such that every assignment keeps its
// cost and nothing becomes negative; what all candidates of a node have in common goes into one
// constant. The constant is then a lower bound, and so is the constant plus what remains at a
// candidate, for all assignments that have it (soft arc consistency: Cooper et al., Artificial
// Intelligence 174, 2010). One sweep forward and one back over the nodes is exact on chains; cycles
// take some more, and leave a few candidates. What cycles hide is looked for at joints, nodes that
// no edge leads past, one candidate at a time (singleton consistency).
#include <optional>
#include <vector>

#include "search/pruning.hpp"

namespace stratplan {

struct Consistency {
  Survivors survivors;     ///< candidates of all assignments that cost no more than the incumbent
  Incumbent incumbent;     ///< no worse than the given one
  double lower_bound = 0;  ///< seconds: no assignment costs less
};

/// For tables with edges at hand. `survivors`: none empty, the incumbent's candidates among them.
Consistency make_consistent(const CostTable& table, Survivors survivors,
                            std::optional<Bytes> memory_limit, Incumbent incumbent);

}  // namespace stratplan
