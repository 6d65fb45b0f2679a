#include "model/partition/lowering/lower.hpp"

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/program/transports.hpp"

namespace stratplan {

namespace {

/// Returns all layers but the input layers, in reverse topological order. The backward phase
/// completes them in this order.
std::vector<LayerIndex> backward_order(const Network& network) {
  std::vector<LayerIndex> order;
  for (LayerIndex index = network.size() - 1; index >= 0; --index)
    if (network.layer(index).kind != LayerKind::Input) order.push_back(index);
  return order;
}

int ranks_of(const Network& network, const LayerDecompositions& decompositions) {
  int ranks = 1;
  for (LayerIndex index = 0; index < network.size(); ++index) {
    const Decomposition& of_layer = decompositions[static_cast<std::size_t>(index)];
    if (network.layer(index).kind == LayerKind::Input) continue;
    ranks = std::max(ranks, of_layer.ranks.end(of_layer.grid.ranks()));
  }
  return ranks;
}

/// Provides the inputs that come from outside the fusion. Data of input layers are loaded. Every
/// other such input gets a buffer that no op writes.
void provide_inputs(Lowering& lowering, const Network& network, const Fusion& fusion) {
  for (const LayerIndex index : fusion.layers()) {
    Lowering::State& state = lowering.state(index);
    const auto& inputs = network.layer(index).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (lowering.reads_input_layer(index, input) || lowering.state(inputs[input]).placed) {
        lowering.edge_forward(inputs[input], index, input);
      } else {
        state.needed.resize(inputs.size(), -1);
        state.needed[input] =
            lowering.add_buffer("x", TensorClass::Activation,
                                state.distributions.inputs[input].region(state.rank), index);
      }
    }
  }
}

}  // namespace

Program lower(const Network& network, const LayerDecompositions& decompositions,
              const Execution& execution, int rank, int ranks) {
  Lowering lowering(network, execution, rank, std::max(ranks, ranks_of(network, decompositions)));
  return lower_with(lowering, network, decompositions, execution);
}

Program lower_with(Lowering& lowering, const Network& network,
                   const LayerDecompositions& decompositions, const Execution& execution) {
  SP_ASSERT(static_cast<int>(decompositions.size()) == network.size(),
            "{} decompositions do not match {} layers", decompositions.size(), network.size());
  const std::vector<LayerIndex> backward = backward_order(network);
  for (const LayerIndex index : backward)
    lowering.place(index, decompositions[static_cast<std::size_t>(index)]);
  for (const Fusion& fusion : fuse_all(network, decompositions, execution)) lowering.fuse(fusion);
  lowering.add_parameters(backward);
  for (std::int64_t micro_batch = 0; micro_batch < network.training.micro_batches; ++micro_batch) {
    lowering.begin_micro_batch(micro_batch);
    for (auto index = backward.rbegin(); index != backward.rend(); ++index) {
      const auto& inputs = network.layer(*index).inputs;
      for (std::size_t input = 0; input < inputs.size(); ++input)
        lowering.edge_forward(inputs[input], *index, input);
      lowering.layer_forward(*index);
    }
    for (const LayerIndex index : backward) lowering.layer_backward(index);
  }
  lowering.update();
  lowering.program.concurrent_streams = execution.concurrent_streams;
  lowering.program.implementations = execution.implementations;
  plan_buffers(lowering.program);
  choose_transports(lowering.program, execution.transports);
  return std::move(lowering.program);
}

Program lower_inference(const Network& network, const LayerDecompositions& decompositions,
                        const Execution& execution, int rank, int ranks) {
  SP_ASSERT(static_cast<int>(decompositions.size()) == network.size(),
            "{} decompositions do not match {} layers", decompositions.size(), network.size());
  Lowering lowering(network, execution, rank, std::max(ranks, ranks_of(network, decompositions)),
                    true);
  const std::vector<LayerIndex> backward = backward_order(network);
  for (const LayerIndex index : backward)
    lowering.place(index, decompositions[static_cast<std::size_t>(index)]);
  for (const Fusion& fusion : fuse_all(network, decompositions, execution)) lowering.fuse(fusion);
  lowering.add_parameters(backward);
  for (auto index = backward.rbegin(); index != backward.rend(); ++index) {
    const auto& inputs = network.layer(*index).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input)
      lowering.edge_forward(inputs[input], *index, input);
    lowering.layer_forward(*index);
  }
  plan_buffers(lowering.program);
  choose_transports(lowering.program, execution.transports);
  return std::move(lowering.program);
}

Program lower_fusion(const Network& network, const Fusion& fusion, const Decomposition& of_head,
                     const Execution& execution, int rank) {
  const std::vector<LayerIndex> layers = fusion.layers();
  Lowering lowering(network, execution, rank, of_head.grid.ranks());
  Decomposition decomposition = of_head;
  for (const LayerIndex index : layers) {
    lowering.place(index, decomposition);
    decomposition = inherited(network.layer(index), decomposition);
  }
  lowering.fuse(fusion);
  lowering.add_parameters({layers.rbegin(), layers.rend()});
  Lowering::State& last = lowering.state(fusion.last());
  for (std::int64_t micro_batch = 0; micro_batch < network.training.micro_batches; ++micro_batch) {
    lowering.begin_micro_batch(micro_batch);
    provide_inputs(lowering, network, fusion);
    for (const LayerIndex index : layers) lowering.layer_forward(index);
    if (!is_loss(network.layer(fusion.head).kind))
      last.contributions = {lowering.add_buffer("dy", TensorClass::ActivationGradient,
                                                last.distributions.home.owned(last.rank),
                                                fusion.last())};
    lowering.begin_backward();
    if (lowering.recomputation().recomputed(fusion.last())) lowering.make_again(fusion.head);
    for (auto index = layers.rbegin(); index != layers.rend(); ++index)
      lowering.layer_backward(*index);
  }
  lowering.update();
  return std::move(lowering.program);
}

Program lower_edge(const Network& network, LayerIndex producer, const Decomposition& from,
                   LayerIndex consumer, std::size_t input, const Decomposition& to,
                   const Execution& execution, int rank) {
  Lowering lowering(network, execution, rank, from.grid.ranks());
  if (network.layer(producer).kind == LayerKind::Input) return std::move(lowering.program);
  lowering.place(producer, from);
  lowering.place(consumer, to);
  for (std::int64_t micro_batch = 0; micro_batch < network.training.micro_batches; ++micro_batch) {
    lowering.begin_micro_batch(micro_batch);
    lowering.state(producer).home = lowering.add_buffer(
        "home", TensorClass::Activation,
        lowering.state(producer).distributions.home.owned(lowering.state(producer).rank), producer);
    lowering.edge_forward(producer, consumer, input);
    lowering.unpack_arrived(consumer);
    const BufferId gradient = lowering.add_buffer(
        "d needed", TensorClass::ActivationGradient,
        lowering.state(consumer).distributions.inputs[input].region(lowering.state(consumer).rank),
        consumer);
    lowering.begin_backward();
    if (lowering.recomputation().brings_again(consumer, producer))
      lowering.edge_forward(producer, consumer, input);
    if (!network.needs_gradient(producer)) continue;
    lowering.finish_edge_backward(
        lowering.begin_edge_backward(producer, consumer, input, gradient));
  }
  return std::move(lowering.program);
}

}  // namespace stratplan
