#pragma once
// The optimum without a memory limit where edge costs are dear to ask for. Edges that nobody has
// asked for yet count as cheap as their bound allows; the best assignment of such an optimistic
// table tells which edges to ask for next; once it rests on true costs alone, it is the best of
// all. Typically a tenth of the pairs is ever asked for.
#include <cstddef>
#include <optional>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

/// Nothing if exact elimination would need a table of more than `table_entries`. Requires a
/// candidate per node at least.
std::optional<std::vector<int>> lazy_search(const CostTable& table, std::size_t table_entries);

}  // namespace stratplan
