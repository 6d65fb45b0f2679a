#pragma once
// Finds the optimum without a memory limit, for tables whose edge costs are expensive to compute. A
// pair of candidates whose cost was not requested yet counts at the edge's lower bound. The best
// assignment under these optimistic costs determines which edge costs to request next. Once the
// best assignment has only exact costs, it is the optimum. Typically about a tenth of the edge
// costs is requested.
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Returns the optimum (candidate per node), or nothing if exact elimination would need a table of
/// more than `table_entries`. Requires at least one candidate per node.
std::optional<std::vector<int>> lazy_search(const CostTable& table, std::size_t table_entries);

}  // namespace stratplan
