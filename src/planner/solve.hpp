#pragma once
// `stratplan solve`: bare cost tables in, assignments out (numbers only; nothing about networks).
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

/// Throws InputError naming `file` and the JSON pointer. Edges name nodes, in either direction.
BareTable read_bare_table(const Json& document, const std::string& file);

/// The answer; "seconds" is the time of the search alone. Throws InfeasibleError, with the least
/// limit that would do.
Json solve(const BareTable& bare);

}  // namespace stratplan
