#include "planner/outline.hpp"

#include "model/cost/block_model.hpp"
#include "model/cost/edge_model.hpp"

namespace stratplan {

Outline outline_of(const Plan& plan, const Network& network, const MachineProfile& machine) {
  Outline sum;
  for (const Block& block : fold(network)) {
    const BlockPieces pieces = BlockModel(network, block, plan.execution, machine).pieces(plan.layers[static_cast<std::size_t>(block.root())]);
    sum.memory += pieces.persistent + pieces.saved;
    sum.step += pieces.forward + pieces.backward + pieces.update;
  }
  const EdgeRates rates = edge_rates(plan.ranks, machine);
  const auto made = [&](LayerIndex layer) { return distribute(network.layer(layer), plan.layers[static_cast<std::size_t>(layer)]); };
  for (LayerIndex consumer = 0; consumer < network.size(); ++consumer) {
    const std::vector<LayerIndex>& inputs = network.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (network.layer(inputs[input]).kind == LayerKind::Input) continue;
      sum.step += edge_cost(rates, made(inputs[input]).home, made(consumer).inputs[input]) * static_cast<double>(network.training.micro_batches);
    }
  }
  return sum;
}

}  // namespace stratplan
