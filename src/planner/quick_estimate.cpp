#include "planner/quick_estimate.hpp"

#include <algorithm>
#include <vector>

#include "model/cost/closed_form/edge_cost.hpp"
#include "planner/layout_estimate.hpp"

namespace stratplan {
namespace {

/// Computes the cost of each distinct edge only once, because most edges of a deep network repeat.
class EdgeCosts {
 public:
  explicit EdgeCosts(const EdgeRates& rates) : rates_(rates) {}
  Seconds of(const Distribution& home, const Needed& needed) {
    const auto known = std::ranges::find_if(
        known_, [&](const Known& edge) { return edge.home == home && edge.needed == needed; });
    if (known != known_.end()) return known->cost;
    known_.push_back({home, needed, edge_cost(rates_, home, needed)});
    return known_.back().cost;
  }

 private:
  struct Known {
    Distribution home;
    Needed needed;
    Seconds cost;
  };
  EdgeRates rates_;
  std::vector<Known> known_;
};

}  // namespace

QuickEstimate quick_estimate_of(const Plan& plan, const Network& network,
                                const MachineProfile& machine) {
  const std::vector<Block> blocks = fold(network);
  const LayoutEstimate alone =
      LayoutEstimates(network, blocks, plan.execution, machine).of(plan.layers);
  QuickEstimate sum{alone.memory, alone.kernels};
  EdgeCosts edges(edge_rates(plan.ranks, machine, plan.execution.precision.activations));
  const auto made = [&](LayerIndex layer) {
    return distribute(network.layer(layer), plan.layers[static_cast<std::size_t>(layer)]);
  };
  for (LayerIndex consumer = 0; consumer < network.size(); ++consumer) {
    const std::vector<LayerIndex>& inputs = network.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (network.layer(inputs[input]).is_data()) continue;
      sum.step += edges.of(made(inputs[input]).home, made(consumer).inputs[input]) *
                  static_cast<double>(network.training.micro_batches);
    }
  }
  return sum;
}

}  // namespace stratplan
