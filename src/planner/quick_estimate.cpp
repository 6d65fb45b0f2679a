#include "planner/quick_estimate.hpp"

#include "model/cost/closed_form/edge_cost.hpp"
#include "planner/layout_estimate.hpp"

namespace stratplan {

QuickEstimate quick_estimate_of(const Plan& plan, const Network& network,
                                const MachineProfile& machine) {
  const std::vector<Block> blocks = fold(network);
  const LayoutEstimate alone =
      LayoutEstimates(network, blocks, plan.execution, machine).of(plan.layers);
  QuickEstimate sum{alone.memory, alone.kernels};
  const EdgeRates rates = edge_rates(plan.ranks, machine, plan.execution.precision.activations);
  const auto made = [&](LayerIndex layer) {
    return distribute(network.layer(layer), plan.layers[static_cast<std::size_t>(layer)]);
  };
  for (LayerIndex consumer = 0; consumer < network.size(); ++consumer) {
    const std::vector<LayerIndex>& inputs = network.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (network.layer(inputs[input]).is_data()) continue;
      sum.step += edge_cost(rates, made(inputs[input]).home, made(consumer).inputs[input]) *
                  static_cast<double>(network.training.micro_batches);
    }
  }
  return sum;
}

}  // namespace stratplan
