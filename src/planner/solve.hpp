#pragma once
// `stratplan solve`: bare cost tables in, assignments out (numbers only; no networks).
//   {"nodes": [{"name", "cost": [..], "memory": [..]?}], "edges": [{"from", "to", "cost": [[..]]}],
//   "memory_limit"?}
//   -> {"cost", "assignment": {name: index}, "optimal", "gap", "memory"?, "seconds"}
#include <optional>
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "search/dense_table.hpp"

namespace stratplan {

struct BareTable {
  DenseTable table;
  std::optional<Bytes> memory_limit;
  bool has_memory = false;
};

/// Throws InputError naming `file` and the JSON pointer. Edges name their nodes, in either order.
BareTable read_bare_table(const Json& document, const std::string& file);

/// Returns the answer; "seconds" is the time of the search alone. Throws InfeasibleError if nothing
/// fits; the message gives the least feasible limit.
Json solve(const BareTable& bare);

}  // namespace stratplan
