#pragma once
// A large table made of a small one.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "search/dense_table.hpp"

namespace stratplan::test {

/// A LargeTable over a dense table. Every other edge points against the order of the nodes.
class Widened final : public LargeTable {
 public:
  explicit Widened(const DenseTable& table) : table_(table) {
    for (int node = 0; node < table.nodes(); ++node) {
      costs_.emplace_back();
      memory_.emplace_back();
      for (int candidate = 0; candidate < table.candidates(node); ++candidate) {
        costs_.back().push_back(table.node_cost(node, candidate).value);
        memory_.back().push_back(table.node_memory(node, candidate).value);
      }
    }
    for (const CostTable::Edge& edge : table.edges())
      edges_.push_back(edges_.size() % 2 == 1 ? Edge{edge.to, edge.from}
                                              : Edge{edge.from, edge.to});
  }

  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  std::span<const double> node_costs(int node) const override {
    return costs_[static_cast<std::size_t>(node)];
  }
  std::span<const std::int64_t> memory(int node) const override {
    return memory_[static_cast<std::size_t>(node)];
  }
  std::span<const Edge> edges() const override { return edges_; }
  double edge_cost(int edge, int from, int to) const override {
    return edge % 2 == 1 ? table_.edge_cost(edge, to, from).value
                         : table_.edge_cost(edge, from, to).value;
  }
  /// Returns as little as allowed for a candidate above its limit.
  std::vector<double> through(int edge, bool forward, std::span<const double> costs,
                              std::span<const double> limits, bool /*rough*/) const override {
    std::vector<double> least(limits.size(), std::numeric_limits<double>::infinity());
    for (std::size_t here = 0; here < costs.size(); ++here) {
      for (std::size_t there = 0; there < least.size(); ++there) {
        const int a = static_cast<int>(here), b = static_cast<int>(there);
        least[there] = std::min(
            least[there], costs[here] + (forward ? edge_cost(edge, a, b) : edge_cost(edge, b, a)));
      }
    }
    const double floor = *std::ranges::min_element(costs);
    for (std::size_t there = 0; there < least.size(); ++there)
      least[there] = std::max(floor, std::min(least[there], limits[there]));
    return least;
  }

 private:
  const DenseTable& table_;
  std::vector<std::vector<double>> costs_;
  std::vector<std::vector<std::int64_t>> memory_;
  std::vector<Edge> edges_;
};

}  // namespace stratplan::test
