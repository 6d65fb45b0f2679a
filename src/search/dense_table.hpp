#pragma once
// A cost table that is held in memory. It serves bare tables from files, and tests.
#include <string>
#include <vector>

#include "search/cost_table.hpp"

namespace stratplan {

class DenseTable : public CostTable {
 public:
  struct Node {
    std::string name;
    std::vector<double> cost;          ///< seconds per candidate, at least one
    std::vector<std::int64_t> memory;  ///< bytes per candidate; if empty, all are 0
  };

  /// Returns the node's index.
  int add_node(Node node);
  /// `cost[i][j]`: seconds if `from` takes candidate i and `to` candidate j. Edges may be given in
  /// either direction and more than once per pair. The costs of a pair are added up, and stored
  /// with from < to.
  void add_edge(int from, int to, const std::vector<std::vector<double>>& cost);

  int nodes() const override { return static_cast<int>(nodes_.size()); }
  std::string node_name(int node) const override { return at(node).name; }
  int candidates(int node) const override { return static_cast<int>(at(node).cost.size()); }
  std::span<const Edge> edges() const override { return edges_; }
  Seconds node_cost(int node, int candidate) const override;
  Bytes node_memory(int node, int candidate) const override;
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override;
  std::span<const double> edge_row(int edge, int from_candidate) const override;
  Seconds edge_bound(int edge) const override {
    return {bounds_.at(static_cast<std::size_t>(edge))};
  }
  bool edges_at_hand() const override { return true; }

 private:
  const Node& at(int node) const { return nodes_.at(static_cast<std::size_t>(node)); }
  int edge_between(int from, int to);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<double>> costs_;  ///< per edge, row-major over candidates of (from, to)
  std::vector<double> bounds_;
};

}  // namespace stratplan
