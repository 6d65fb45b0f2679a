#include "search/problem.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "model/base/assert.hpp"

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
    std::vector<double> cost;
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
  const auto edges = table.edges();
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    Problem::Pair pair{edges[edge].from, edges[edge].to, {}};
    pair.cost.reserve(static_cast<std::size_t>(problem.size(pair.from)) * problem.size(pair.to));
    for (const int i : survivors[static_cast<std::size_t>(pair.from)]) {
      const std::span<const double> row = table.edge_row(static_cast<int>(edge), i);
      for (const int j : survivors[static_cast<std::size_t>(pair.to)])
        pair.cost.push_back(checked(row.empty() ? table.edge_cost(static_cast<int>(edge), i, j)
                                                : Seconds{row[static_cast<std::size_t>(j)]}));
    }
    problem.pairs.push_back(std::move(pair));
  }
  return problem;
}

Problem without_dominated(const Problem& problem) {
  Problem result = problem;
  for (int node = 0; node < result.nodes(); ++node) {
    const std::vector<int> kept = undominated(result, node);
    if (static_cast<int>(kept.size()) < result.size(node)) restrict_to(result, node, kept);
  }
  return result;
}

std::vector<int> elimination_order(const Problem& problem) {
  // Searches call this function often, and sorted lists take a fifth of the time of sets.
  std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(problem.nodes()));
  for (const Problem::Pair& pair : problem.pairs) {
    neighbours[static_cast<std::size_t>(pair.from)].push_back(pair.to);
    neighbours[static_cast<std::size_t>(pair.to)].push_back(pair.from);
  }
  for (std::vector<int>& around : neighbours) std::ranges::sort(around);
  constexpr double done = std::numeric_limits<double>::infinity();
  std::vector<double> work(static_cast<std::size_t>(
      problem.nodes()));  ///< per node: entries of the table that its elimination needs
  const auto update = [&](int node) {
    double& entries = work[static_cast<std::size_t>(node)] = problem.size(node);
    for (const int other : neighbours[static_cast<std::size_t>(node)])
      entries = std::min(entries * problem.size(other), std::numeric_limits<double>::max());
  };
  for (int node = 0; node < problem.nodes(); ++node) update(node);
  std::vector<int> order;
  while (order.size() < work.size()) {
    const int next = static_cast<int>(std::min_element(work.begin(), work.end()) - work.begin());
    const std::vector<int> around = neighbours[static_cast<std::size_t>(next)];
    for (const int a : around) {
      auto& theirs = neighbours[static_cast<std::size_t>(a)];
      std::vector<int> both;
      std::ranges::set_union(theirs, around, std::back_inserter(both));
      std::erase_if(both, [&](int node) { return node == a || node == next; });
      theirs = std::move(both);
      update(a);
    }
    work[static_cast<std::size_t>(next)] = done;
    order.push_back(next);
  }
  return order;
}

Problem reordered(const Problem& problem, const std::vector<int>& order) {
  Problem result;
  std::vector<int> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    place[from] = static_cast<int>(i);
    result.origin.push_back(problem.origin[from]);
    result.candidates.push_back(problem.candidates[from]);
    result.cost.push_back(problem.cost[from]);
    result.memory.push_back(problem.memory[from]);
  }
  for (const Problem::Pair& pair : problem.pairs) {
    Problem::Pair turned{place[static_cast<std::size_t>(pair.from)],
                         place[static_cast<std::size_t>(pair.to)], pair.cost};
    if (turned.from > turned.to) {
      const std::size_t rows = problem.size(pair.from), columns = problem.size(pair.to);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j)
          turned.cost[j * rows + i] = pair.cost[i * columns + j];
      }
      std::swap(turned.from, turned.to);
    }
    result.pairs.push_back(std::move(turned));
  }
  return result;
}

}  // namespace stratplan
