#include "search/pruning.hpp"

#include <algorithm>

#include "search/numbers.hpp"
#include "search/search.hpp"

namespace stratplan {

namespace {

/// One edge of a node, with the neighbour at its other end.
struct Incidence {
  int edge;
  int other;
  bool is_from;
};
using Incidences = std::vector<std::vector<Incidence>>;

Incidences incidences_of(const CostTable& table) {
  Incidences result(static_cast<std::size_t>(table.nodes()));
  const auto edges = table.edges();
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    result[static_cast<std::size_t>(edges[edge].from)].push_back(
        {static_cast<int>(edge), edges[edge].to, true});
    result[static_cast<std::size_t>(edges[edge].to)].push_back(
        {static_cast<int>(edge), edges[edge].from, false});
  }
  return result;
}

/// Returns the cost of a node with this candidate, and of its edges to neighbours that have a
/// candidate already (>= 0 in `assignment`). Stops requesting edge costs once the sum reaches
/// `enough`.
double local_cost(const CostTable& table, const Incidences& incidences,
                  const std::vector<int>& assignment, int node, int candidate, double enough) {
  double cost = table.node_cost(node, candidate).value;
  for (const Incidence& incidence : incidences[static_cast<std::size_t>(node)]) {
    const int other = assignment[static_cast<std::size_t>(incidence.other)];
    if (cost >= enough) break;
    if (other < 0) continue;
    cost += (incidence.is_from ? table.edge_cost(incidence.edge, candidate, other)
                               : table.edge_cost(incidence.edge, other, candidate))
                .value;
  }
  return cost;
}

/// Returns the candidate with the least local cost among those that need at most `room` memory, or
/// the node's current candidate if none costs less. Candidates are tried in the order of their node
/// costs, so that most of them need no edge costs.
int best_candidate(const CostTable& table, const Incidences& incidences,
                   std::vector<int> candidates, const std::vector<int>& assignment, int node,
                   Bytes room) {
  std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    return table.node_cost(node, a) < table.node_cost(node, b);
  });
  int best = assignment[static_cast<std::size_t>(node)];
  double least =
      best < 0 ? infinity : local_cost(table, incidences, assignment, node, best, infinity);
  for (const int candidate : candidates) {
    if (table.node_memory(node, candidate) > room) continue;
    const double wanted = least * (1 - 1e-12);
    const double cost = local_cost(table, incidences, assignment, node, candidate, wanted);
    if (cost < wanted) {
      least = cost;
      best = candidate;
    }
  }
  return best;
}

Bytes least_memory_of(const CostTable& table, int node) {
  Bytes least = table.node_memory(node, 0);
  for (int candidate = 1; candidate < table.candidates(node); ++candidate)
    least = std::min(least, table.node_memory(node, candidate));
  return least;
}

}  // namespace

Bytes least_memory(const CostTable& table) {
  Bytes total{};
  for (int node = 0; node < table.nodes(); ++node) total += least_memory_of(table, node);
  return total;
}

Survivors within_memory(const CostTable& table, std::optional<Bytes> memory_limit) {
  const Bytes least = least_memory(table);
  Survivors survivors(static_cast<std::size_t>(table.nodes()));
  for (int node = 0; node < table.nodes(); ++node) {
    const Bytes others = least - least_memory_of(table, node);
    for (int candidate = 0; candidate < table.candidates(node); ++candidate) {
      const bool fits =
          !memory_limit || others + table.node_memory(node, candidate) <= *memory_limit;
      if (fits) survivors[static_cast<std::size_t>(node)].push_back(candidate);
    }
  }
  return survivors;
}

Incumbent descend(const CostTable& table, const Survivors& survivors,
                  std::optional<Bytes> memory_limit, std::vector<int> start) {
  const Incidences incidences = incidences_of(table);
  std::vector<int> assignment = std::move(start);
  Bytes memory = memory_of(table, assignment);
  const Bytes unlimited{std::numeric_limits<std::int64_t>::max()};
  bool improved = true;
  for (int sweep = 0; improved && sweep < 20;
       ++sweep) {  // further sweeps would gain next to nothing
    improved = false;
    for (int i = 0; i < table.nodes(); ++i) {
      const int node = sweep % 2 == 0 ? i : table.nodes() - 1 - i;
      int& current = assignment[static_cast<std::size_t>(node)];
      const Bytes others = memory - table.node_memory(node, current);
      const Bytes room = memory_limit ? *memory_limit - others : unlimited;
      const int best = best_candidate(table, incidences, survivors[static_cast<std::size_t>(node)],
                                      assignment, node, room);
      if (best == current) continue;
      memory = others + table.node_memory(node, best);
      current = best;
      improved = true;
    }
  }
  return {assignment, cost_of(table, assignment).value};
}

std::vector<int> greedy_assignment(const CostTable& table, const Survivors& survivors) {
  const Incidences incidences = incidences_of(table);
  const Bytes unlimited{std::numeric_limits<std::int64_t>::max()};
  std::vector<int> assignment(static_cast<std::size_t>(table.nodes()), -1);
  for (int node = 0; node < table.nodes(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    assignment[n] = best_candidate(table, incidences, survivors[n], assignment, node, unlimited);
  }
  return assignment;
}

Incumbent first_incumbent(const CostTable& table, const Survivors& survivors,
                          std::optional<Bytes> memory_limit) {
  std::vector<int> lean, cheap;
  const std::vector<int> greedy = greedy_assignment(table, survivors);
  for (int node = 0; node < table.nodes(); ++node) {
    const auto& candidates = survivors[static_cast<std::size_t>(node)];
    lean.push_back(*std::min_element(candidates.begin(), candidates.end(), [&](int a, int b) {
      return table.node_memory(node, a) < table.node_memory(node, b);
    }));
    cheap.push_back(*std::min_element(candidates.begin(), candidates.end(), [&](int a, int b) {
      return table.node_cost(node, a) < table.node_cost(node, b);
    }));
  }
  std::optional<Incumbent> best;
  for (const std::vector<int>* start :
       std::initializer_list<const std::vector<int>*>{&greedy, &cheap, &lean}) {
    if (memory_limit && memory_of(table, *start) > *memory_limit) continue;
    Incumbent found = descend(table, survivors, memory_limit, *start);
    if (!best || found.cost < best->cost) best = std::move(found);
  }
  return *best;  // `lean` fits, otherwise some list of survivors would be empty
}

Survivors below(const CostTable& table, const Survivors& survivors, double upper_bound) {
  std::vector<double> least;
  double rest = 0;
  for (int node = 0; node < table.nodes(); ++node) {
    double cost = infinity;
    for (const int candidate : survivors[static_cast<std::size_t>(node)])
      cost = std::min(cost, table.node_cost(node, candidate).value);
    least.push_back(cost);
    rest += cost;
  }
  for (std::size_t edge = 0; edge < table.edges().size(); ++edge)
    rest += table.edge_bound(static_cast<int>(edge)).value;
  Survivors result(survivors.size());
  for (int node = 0; node < table.nodes(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    for (const int candidate : survivors[n]) {
      if (rest - least[n] + table.node_cost(node, candidate).value <= upper_bound * (1 + 1e-9))
        result[n].push_back(candidate);
    }
  }
  return result;
}

}  // namespace stratplan
