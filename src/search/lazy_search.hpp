#pragma once
// The optimum without a memory limit for tables whose edge costs are expensive to compute. Edges
// that were not requested yet count at their lower bounds. The best assignment of this optimistic
// table tells which edges to request next. Once an assignment with only exact costs is best, it is
// the optimum. Typically about a tenth of the pairs is requested.
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Returns nothing if exact elimination would need a table of more than `table_entries`. Requires
/// at least one candidate per node.
std::optional<std::vector<int>> lazy_search(const CostTable& table, std::size_t table_entries);

}  // namespace stratplan
