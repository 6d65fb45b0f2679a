#pragma once
// The costs of a plan table with a different weight on communication. The search adds up the cost
// of each layer and edge on its own. Waiting for partners makes communication more expensive than
// in this sum, and overlap makes communication cheaper. So the best plans under other weights are
// simulated, too.
#include "model/cost/plan_table.hpp"

namespace stratplan {

class WeightedTable final : public CostTable {
 public:
  /// `table` must outlive this object.
  WeightedTable(const PlanTable& table, double communication)
      : table_(table), communication_(communication) {}

  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  int candidates(int node) const override { return table_.candidates(node); }
  std::span<const Edge> edges() const override { return table_.edges(); }
  Seconds node_cost(int node, int candidate) const override {
    const LayerCost& cost = table_.layer_cost(node, candidate);
    return cost.forward + cost.backward + cost.update + cost.communication * communication_;
  }
  Bytes node_memory(int node, int candidate) const override {
    return table_.node_memory(node, candidate);
  }
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override {
    return table_.edge_cost(edge, from_candidate, to_candidate) * communication_;
  }
  Seconds edge_bound(int edge) const override { return table_.edge_bound(edge) * communication_; }

 private:
  const PlanTable& table_;
  double communication_;
};

}  // namespace stratplan
