#pragma once
// `stratplan solve` reads a bare cost table, which is not derived from a network, and returns the
// best assignment.
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

/// Throws an InputError that names `file` and the JSON pointer of the fault. An edge names its two
/// nodes in either order.
BareTable read_bare_table(const Json& document, const std::string& file);

/// Returns the answer, in which "seconds" is the time of the search alone. Throws InfeasibleError
/// if no assignment fits. The message then gives the least feasible limit.
Json solve(const BareTable& bare);

}  // namespace stratplan
