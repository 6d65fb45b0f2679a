#pragma once
// Random cost tables of shapes that networks have, and a table that counts the pairs it is asked
// for.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "search/dense_table.hpp"

namespace stratplan::test {

enum class Family { Chain, Diamonds, LongSkips, Random, Forest };

/// Returns distinct edges (from < to) of a graph over `nodes` nodes.
inline std::set<std::pair<int, int>> random_edges(Family family, int nodes) {
  std::set<std::pair<int, int>> edges;
  const auto chain = [&] {
    for (int node = 1; node < nodes; ++node) edges.insert({node - 1, node});
  };
  switch (family) {
    case Family::Chain: chain(); break;
    case Family::
        Diamonds:  // a residual network: every third node also reads the node two before it
      chain();
      for (int node = 2; node < nodes; node += 2) edges.insert({node - 2, node});
      break;
    case Family::LongSkips:  // a U-Net
      chain();
      for (int node = 0; node < nodes / 2; ++node) {
        if (node < nodes - 1 - node) edges.insert({node, nodes - 1 - node});
      }
      break;
    case Family::Random:
      for (int a = 0; a < nodes; ++a) {
        for (int b = a + 1; b < nodes; ++b) {
          if (*rc::gen::inRange(0, 2) == 1) edges.insert({a, b});
        }
      }
      break;
    case Family::Forest:  // disconnected
      for (int node = 1; node < nodes; ++node) {
        if (const int parent = *rc::gen::inRange(-1, node); parent >= 0)
          edges.insert({parent, node});
      }
      break;
  }
  return edges;
}

/// Returns a table whose costs and memories are small integers, so ties are common and sums are
/// exact.
inline DenseTable random_table(Family family, int nodes, int most_candidates,
                               int largest_cost = 9) {
  const auto number = [&] { return static_cast<double>(*rc::gen::inRange(0, largest_cost + 1)); };
  DenseTable table;
  for (int node = 0; node < nodes; ++node) {
    DenseTable::Node made{fmt::format("n{}", node), {}, {}};
    const int candidates = *rc::gen::inRange(1, most_candidates + 1);
    for (int i = 0; i < candidates; ++i) {
      made.cost.push_back(number());
      made.memory.push_back(*rc::gen::inRange(0, 10));
    }
    table.add_node(made);
  }
  for (const auto& [from, to] : random_edges(family, nodes)) {
    std::vector<std::vector<double>> cost(static_cast<std::size_t>(table.candidates(from)));
    for (auto& row : cost) {
      for (int j = 0; j < table.candidates(to); ++j) row.push_back(number());
    }
    table.add_edge(from, to, cost);
  }
  return table;
}

/// The same table with another order of nodes, candidates and edges, and with other names.
struct Shuffled {
  DenseTable table;
  std::vector<int> node;  ///< by node of the given table: its index here
  /// by node and candidate of the given table: its index here
  std::vector<std::vector<int>> candidate;
};

inline std::vector<int> random_order(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (int i = size - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(*rc::gen::inRange(0, i + 1))]);
  return order;
}

inline Shuffled shuffled(const DenseTable& table) {
  Shuffled result{{}, random_order(table.nodes()), {}};
  std::vector<DenseTable::Node> nodes(result.node.size());
  for (int node = 0; node < table.nodes(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    const std::vector<int>& order =
        result.candidate.emplace_back(random_order(table.candidates(node)));
    DenseTable::Node& made = nodes[static_cast<std::size_t>(result.node[n])];
    made = {fmt::format("m{}", node), std::vector<double>(order.size()),
            std::vector<std::int64_t>(order.size())};
    for (std::size_t c = 0; c < order.size(); ++c) {
      made.cost[static_cast<std::size_t>(order[c])] =
          table.node_cost(node, static_cast<int>(c)).value;
      made.memory[static_cast<std::size_t>(order[c])] =
          table.node_memory(node, static_cast<int>(c)).value;
    }
  }
  for (DenseTable::Node& node : nodes) result.table.add_node(std::move(node));
  for (const int edge : random_order(static_cast<int>(table.edges().size()))) {
    const auto [from, to] = table.edges()[static_cast<std::size_t>(edge)];
    const std::vector<int>&rows = result.candidate[static_cast<std::size_t>(from)],
          &columns = result.candidate[static_cast<std::size_t>(to)];
    std::vector<std::vector<double>> cost(rows.size(), std::vector<double>(columns.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < columns.size(); ++j) {
        const double seconds =
            table.edge_cost(edge, static_cast<int>(i), static_cast<int>(j)).value;
        cost[static_cast<std::size_t>(rows[i])][static_cast<std::size_t>(columns[j])] = seconds;
      }
    }
    result.table.add_edge(result.node[static_cast<std::size_t>(from)],
                          result.node[static_cast<std::size_t>(to)], cost);
  }
  return result;
}

inline Family random_family() {
  return *rc::gen::element(Family::Chain, Family::Diamonds, Family::LongSkips, Family::Random,
                           Family::Forest);
}

/// Passes all calls on, says that its edges are not at hand, and records the pairs that were asked
/// for.
class CountingTable : public CostTable {
 public:
  explicit CountingTable(const CostTable& table) : table_(table) {}
  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  int candidates(int node) const override { return table_.candidates(node); }
  std::span<const Edge> edges() const override { return table_.edges(); }
  Seconds node_cost(int node, int candidate) const override {
    return table_.node_cost(node, candidate);
  }
  Bytes node_memory(int node, int candidate) const override {
    return table_.node_memory(node, candidate);
  }
  Seconds edge_bound(int edge) const override { return table_.edge_bound(edge); }
  Seconds edge_cost(int edge, int from, int to) const override {
    asked_.insert({edge, from, to});
    return table_.edge_cost(edge, from, to);
  }
  std::size_t distinct_pairs() const { return asked_.size(); }

 private:
  const CostTable& table_;
  mutable std::set<std::tuple<int, int, int>> asked_;
};

}  // namespace stratplan::test
