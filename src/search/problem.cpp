#include "search/problem.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/index.hpp"
#include "model/base/transposed.hpp"

namespace stratplan {

namespace {

double checked(Seconds seconds) {
  SP_ASSERT(std::isfinite(seconds.value), "the table has a cost of {}, which is not finite",
            seconds.value);
  return seconds.value;
}

/// A pair as seen from one of its two nodes: one row of costs per candidate of that node.
struct Side {
  const Problem::Pair* pair;
  bool is_from;
  int others;  ///< number of the neighbour's candidates
  int own;     ///< number of the node's own candidates
  double at(int candidate, int other) const {
    return is_from ? pair->cost[static_cast<std::size_t>(candidate) * others + other]
                   : pair->cost[static_cast<std::size_t>(other) * own + candidate];
  }
};

std::vector<Side> sides_of(const Problem& problem, int node) {
  std::vector<Side> sides;
  for (const Problem::Pair& pair : problem.pairs) {
    if (pair.from == node)
      sides.push_back({&pair, true, problem.size(pair.to), problem.size(node)});
    if (pair.to == node)
      sides.push_back({&pair, false, problem.size(pair.from), problem.size(node)});
  }
  return sides;
}

/// Whether candidate `better` needs no more memory than candidate `worse` and never costs more. The
/// largest extra cost of `better` is summed over the neighbours. The sum only grows, so most
/// comparisons end after a few neighbours.
bool dominates(const Problem& problem, int node, const std::vector<Side>& sides, int better,
               int worse) {
  const auto& cost = problem.cost[static_cast<std::size_t>(node)];
  const auto& memory = problem.memory[static_cast<std::size_t>(node)];
  if (memory[static_cast<std::size_t>(better)] > memory[static_cast<std::size_t>(worse)])
    return false;
  const double slack =
      cost[static_cast<std::size_t>(worse)] - cost[static_cast<std::size_t>(better)];
  double extra = 0;
  for (const Side& side : sides) extra += side.at(better, 0) - side.at(worse, 0);
  for (const Side& side : sides) {
    double most = side.at(better, 0) - side.at(worse, 0);
    for (int other = 1; other < side.others; ++other) {
      const double difference = side.at(better, other) - side.at(worse, other);
      if (difference > most) {
        extra += difference - most;
        most = difference;
      }
      if (extra > slack) return false;
    }
  }
  return extra <= slack;
}

/// Returns the node's candidates to keep, ascending. If two candidates dominate each other, the one
/// with the lower index stays.
std::vector<int> undominated(const Problem& problem, int node) {
  const std::vector<Side> sides = sides_of(problem, node);
  const int size = problem.size(node);
  std::vector<char> kept(static_cast<std::size_t>(size), 1);
  for (int worse = size - 1; worse >= 0; --worse) {
    for (int better = 0; better < size && kept[static_cast<std::size_t>(worse)]; ++better) {
      if (better == worse || !kept[static_cast<std::size_t>(better)]) continue;
      if (dominates(problem, node, sides, better, worse)) kept[static_cast<std::size_t>(worse)] = 0;
    }
  }
  std::vector<int> result;
  for (int candidate = 0; candidate < size; ++candidate) {
    if (kept[static_cast<std::size_t>(candidate)]) result.push_back(candidate);
  }
  return result;
}

template <class T>
std::vector<T> picked(const std::vector<T>& values, const std::vector<int>& indices) {
  std::vector<T> result;
  result.reserve(indices.size());
  for (const int index : indices) result.push_back(values[static_cast<std::size_t>(index)]);
  return result;
}

/// Keeps only the given candidates of one node.
void restrict_to(Problem& problem, int node, const std::vector<int>& kept) {
  const auto n = static_cast<std::size_t>(node);
  for (Problem::Pair& pair : problem.pairs) {
    if (pair.from != node && pair.to != node) continue;
    const int rows = problem.size(pair.from), columns = problem.size(pair.to);
    Entries cost;
    for (int i = 0; i < rows; ++i) {
      if (pair.from == node && !std::binary_search(kept.begin(), kept.end(), i)) continue;
      for (int j = 0; j < columns; ++j) {
        if (pair.to == node && !std::binary_search(kept.begin(), kept.end(), j)) continue;
        cost.push_back(pair.cost[static_cast<std::size_t>(i) * columns + j]);
      }
    }
    pair.cost = std::move(cost);
  }
  problem.candidates[n] = picked(problem.candidates[n], kept);
  problem.cost[n] = picked(problem.cost[n], kept);
  problem.memory[n] = picked(problem.memory[n], kept);
}

/// Fills in the pair's costs.
void fill_pair(const CostTable& table, int edge, const Survivors& survivors, Problem::Pair& pair) {
  double* cost = pair.cost.data();
  for (const int i : survivors[at(pair.from)]) {
    const std::span<const double> row = table.edge_row(edge, i);
    for (const int j : survivors[at(pair.to)])
      *cost++ = checked(row.empty() ? table.edge_cost(edge, i, j) : Seconds{row[at(j)]});
  }
}

}  // namespace

std::vector<int> Problem::in_table(const std::vector<int>& assignment) const {
  std::vector<int> result(assignment.size());
  for (std::size_t i = 0; i < assignment.size(); ++i) {
    result[static_cast<std::size_t>(origin[i])] =
        candidates[i][static_cast<std::size_t>(assignment[i])];
  }
  return result;
}

Problem make_problem(const CostTable& table, const Survivors& survivors) {
  Problem problem;
  problem.candidates = survivors;
  for (int node = 0; node < table.nodes(); ++node) {
    problem.origin.push_back(node);
    problem.cost.emplace_back();
    problem.memory.emplace_back();
    for (const int candidate : survivors[static_cast<std::size_t>(node)]) {
      problem.cost.back().push_back(checked(table.node_cost(node, candidate)));
      problem.memory.back().push_back(table.node_memory(node, candidate).value);
    }
  }
  for (const auto& [from, to] : table.edges())
    problem.pairs.push_back({from, to, Entries(at(problem.size(from)) * at(problem.size(to)))});
  // Only rows that lie in memory may be read concurrently.
  const auto in_memory = [&](int edge) {
    const std::vector<int>& from = survivors[at(table.edges()[at(edge)].from)];
    return !from.empty() && !table.edge_row(edge, from.front()).empty();
  };
  std::vector<int> copied;
  for (int edge = 0; edge < std::ssize(problem.pairs); ++edge)
    if (in_memory(edge))
      copied.push_back(edge);
    else
      fill_pair(table, edge, survivors, problem.pairs[at(edge)]);
  in_parallel(copied.size(), [&](std::size_t i) {
    fill_pair(table, copied[i], survivors, problem.pairs[at(copied[i])]);
  });
  return problem;
}

Problem without_dominated(Problem problem) {
  for (int node = 0; node < problem.nodes(); ++node) {
    const std::vector<int> kept = undominated(problem, node);
    if (static_cast<int>(kept.size()) < problem.size(node)) restrict_to(problem, node, kept);
  }
  return problem;
}

namespace {

struct Order {
  std::vector<int> nodes;
  double sums = 0;  ///< of a candidate of an eliminated node with an entry of its message
};

/// `sizes`: number of candidates, by node. `neighbours`: by node, each neighbour once.
Order cheapest_order(const std::vector<int>& sizes, std::vector<std::vector<int>> neighbours) {
  // Searches call this function often, and sorted lists take a fifth of the time of sets.
  for (std::vector<int>& around : neighbours) std::ranges::sort(around);
  constexpr double done = std::numeric_limits<double>::infinity();
  std::vector<double> work(sizes.size());  ///< per node: entries of its table, for each candidate
  const auto update = [&](int node) {
    double& entries = work[at(node)] = sizes[at(node)];
    for (const int other : neighbours[at(node)])
      entries = std::min(entries * sizes[at(other)], std::numeric_limits<double>::max());
  };
  for (int node = 0; node < std::ssize(sizes); ++node) update(node);
  Order order;
  while (order.nodes.size() < work.size()) {
    const int next = static_cast<int>(std::min_element(work.begin(), work.end()) - work.begin());
    const std::vector<int> around = neighbours[at(next)];
    for (const int a : around) {
      auto& theirs = neighbours[at(a)];
      std::vector<int> both;
      std::ranges::set_union(theirs, around, std::back_inserter(both));
      std::erase_if(both, [&](int node) { return node == a || node == next; });
      theirs = std::move(both);
      update(a);
    }
    order.sums += work[at(next)];
    work[at(next)] = done;
    order.nodes.push_back(next);
  }
  return order;
}

/// By node, the other ends of its edges. `edges` have members `from` and `to`.
template <class Edges>
std::vector<std::vector<int>> neighbours_by(const Edges& edges, std::size_t nodes) {
  std::vector<std::vector<int>> neighbours(nodes);
  for (const auto& edge : edges) {
    neighbours[at(edge.from)].push_back(edge.to);
    neighbours[at(edge.to)].push_back(edge.from);
  }
  return neighbours;
}

std::vector<int> sizes_of(const Survivors& candidates) {
  std::vector<int> sizes;
  for (const std::vector<int>& one : candidates) sizes.push_back(static_cast<int>(one.size()));
  return sizes;
}

}  // namespace

std::vector<int> elimination_order(const Problem& problem) {
  return cheapest_order(sizes_of(problem.candidates),
                        neighbours_by(problem.pairs, problem.candidates.size()))
      .nodes;
}

bool elimination_is_cheap(const CostTable& table, const Survivors& survivors) {
  constexpr double reads = 20, sums_per_read = 10;  // in the time of one read
  double entries = 0;
  for (const auto& [from, to] : table.edges())
    entries += static_cast<double>(survivors[at(from)].size()) *
               static_cast<double>(survivors[at(to)].size());
  return cheapest_order(sizes_of(survivors), neighbours_by(table.edges(), survivors.size())).sums <=
         reads * sums_per_read * entries;
}

Problem reordered(Problem problem, const std::vector<int>& order) {
  Problem result;
  std::vector<int> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    place[from] = static_cast<int>(i);
    result.origin.push_back(problem.origin[from]);
    result.candidates.push_back(std::move(problem.candidates[from]));
    result.cost.push_back(std::move(problem.cost[from]));
    result.memory.push_back(std::move(problem.memory[from]));
  }
  for (Problem::Pair& pair : problem.pairs) {
    Problem::Pair turned{place[static_cast<std::size_t>(pair.from)],
                         place[static_cast<std::size_t>(pair.to)], std::move(pair.cost)};
    if (turned.from > turned.to) {
      turned.cost =
          transposed(turned.cost, at(result.size(turned.from)), at(result.size(turned.to)));
      std::swap(turned.from, turned.to);
    }
    result.pairs.push_back(std::move(turned));
  }
  return result;
}

}  // namespace stratplan
