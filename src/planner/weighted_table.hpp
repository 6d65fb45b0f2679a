#pragma once
// The costs of a plan table with more or less weight on communication. The search adds up what each
// layer and edge costs on its own; waiting for partners makes communication dearer than that and
// overlap makes it cheaper, so the best plans for other weights are worth the simulator's opinion.
#include "model/cost/plan_table.hpp"

namespace stratplan {

class WeightedTable final : public CostTable {
 public:
  /// `table` must outlive this.
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
