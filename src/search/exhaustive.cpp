// The slow, obvious version of the search, with which tests compare the fast search.
#include "search/search.hpp"

namespace stratplan {

namespace {

/// Advances to the next assignment in lexicographic order. Returns false after the last assignment.
bool advance(const CostTable& table, std::vector<int>& assignment) {
  for (int node = table.nodes() - 1; node >= 0; --node) {
    int& candidate = assignment[static_cast<std::size_t>(node)];
    if (++candidate < table.candidates(node)) return true;
    candidate = 0;
  }
  return false;
}

}  // namespace

Seconds cost_of(const CostTable& table, const std::vector<int>& assignment) {
  const auto at = [&](int node) { return assignment[static_cast<std::size_t>(node)]; };
  Seconds total{};
  for (int node = 0; node < table.nodes(); ++node) total += table.node_cost(node, at(node));
  const auto edges = table.edges();
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    total += table.edge_cost(static_cast<int>(edge), at(edges[edge].from), at(edges[edge].to));
  }
  return total;
}

Bytes memory_of(const CostTable& table, const std::vector<int>& assignment) {
  Bytes total{};
  for (int node = 0; node < table.nodes(); ++node)
    total += table.node_memory(node, assignment[static_cast<std::size_t>(node)]);
  return total;
}

std::optional<SearchResult> search_exhaustively(const CostTable& table,
                                                std::optional<Bytes> memory_limit) {
  for (int node = 0; node < table.nodes(); ++node) {
    if (table.candidates(node) == 0) return std::nullopt;
  }
  std::optional<SearchResult> best;
  std::vector<int> assignment(static_cast<std::size_t>(table.nodes()), 0);
  do {
    const Bytes memory = memory_of(table, assignment);
    if (memory_limit && memory > *memory_limit) continue;
    const Seconds cost = cost_of(table, assignment);
    if (!best || cost < best->cost) best = SearchResult{assignment, cost, cost, memory};
  } while (advance(table, assignment));
  return best;
}

}  // namespace stratplan
