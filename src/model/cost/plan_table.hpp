#pragma once
// The cost table of a network's blocks on a machine, as the search reads it. Each cost is computed
// when first requested.
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/cost/layer_cost.hpp"
#include "search/cost_table.hpp"

namespace stratplan {

/// Node i is blocks[i] with candidates[i]. Not thread-safe.
class PlanTable final : public CostTable {
 public:
  /// All arguments must outlive this object. `candidates` must be legal for their blocks.
  PlanTable(const Network& network, const std::vector<Block>& blocks,
            const std::vector<std::vector<Decomposition>>& candidates, const Execution& execution,
            const MachineProfile& machine);
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  int nodes() const override { return static_cast<int>(blocks_.size()); }
  std::string node_name(int node) const override;
  int candidates(int node) const override {
    return static_cast<int>(candidates_[static_cast<std::size_t>(node)].size());
  }
  std::span<const Edge> edges() const override { return edges_; }
  Seconds node_cost(int node, int candidate) const override {
    return layer_cost(node, candidate).total();
  }
  Bytes node_memory(int node, int candidate) const override;
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override;

  /// The cost of a node, split into parts.
  const LayerCost& layer_cost(int node, int candidate) const;
  const Decomposition& decomposition(int node, int candidate) const {
    return candidates_[static_cast<std::size_t>(node)][static_cast<std::size_t>(candidate)];
  }

 private:
  /// A connection between two layers. It belongs to the table's edge between their nodes.
  struct LayerEdge {
    LayerIndex producer = -1, consumer = -1;
    std::size_t input = 0;
    bool forward = true;  ///< whether the producer belongs to the node Edge::from
  };
  void find_edges();
  const Decomposition& decomposition_of(LayerIndex layer, int candidate) const;

  const Network& network_;
  const std::vector<Block>& blocks_;
  const std::vector<std::vector<Decomposition>>& candidates_;
  mutable LayerCosts costs_;
  std::vector<Edge> edges_;
  std::vector<std::vector<LayerEdge>> layer_edges_;  ///< per edge of the table
  std::vector<int> node_of_layer_;                   ///< by layer; -1 for an input layer
  /// the layer's decomposition, by layer and by candidate of the layer's node
  std::vector<std::vector<Decomposition>> spread_;
  mutable std::vector<std::vector<const LayerCost*>> node_costs_;
  mutable std::vector<std::unordered_map<std::int64_t, Seconds>> edge_costs_;
};

}  // namespace stratplan
