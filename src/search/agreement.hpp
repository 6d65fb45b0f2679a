#pragma once
// Searches among assignments in which certain nodes agree on a choice. Inside a search, an
// agreement is one more node, whose candidates are the choices. An edge leads to it from each node
// that must agree. The edge costs nothing if the node's candidate makes the choice, and else more
// than any sensible assignment. So costs stay pairwise, and no other part of the search knows
// agreements.
#include <optional>
#include <string>
#include <vector>

#include "search/branch_and_bound.hpp"
#include "search/cost_table.hpp"
#include "search/search.hpp"

namespace stratplan {

struct Agreement {
  struct User {
    int node = -1;
    /// by candidate of the node: the choice that it makes; -1 if some other user cannot make it
    std::vector<int> choice_of;
  };
  std::string name;
  int choices = 0;
  std::vector<User> users;
};

/// Whether an assignment satisfies all agreements.
bool agrees(const std::vector<Agreement>& agreements, const std::vector<int>& assignment);

/// As search() without agreements (search.hpp). Returns nothing if no assignment within the limit
/// satisfies them.
std::optional<SearchResult> search(const CostTable& table, const std::vector<Agreement>& agreements,
                                   std::optional<Bytes> memory_limit = {},
                                   const SearchLimits& limits = {});

/// As branch_and_bound() without agreements (branch_and_bound.hpp). All `known` assignments must
/// satisfy them.
std::optional<BoundedSolution> branch_and_bound(const LargeTable& table,
                                                const std::vector<Agreement>& agreements,
                                                std::vector<std::vector<int>> known,
                                                const BranchAndBoundOptions& options = {},
                                                std::vector<std::vector<int>> few = {});

/// As best_among() without agreements (branch_and_bound.hpp).
std::vector<int> best_among(const LargeTable& table, const std::vector<Agreement>& agreements,
                            std::vector<std::vector<int>>& few, const std::vector<int>& known);

}  // namespace stratplan
