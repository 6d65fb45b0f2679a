#include "model/cost/plan_table.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"

namespace stratplan {

PlanTable::PlanTable(const Network& network, const std::vector<Block>& blocks,
                     const std::vector<std::vector<Decomposition>>& candidates,
                     const Execution& execution, const MachineProfile& machine)
    : network_(network),
      blocks_(blocks),
      candidates_(candidates),
      costs_(network, execution, machine) {
  SP_ASSERT(blocks.size() == candidates.size(), "blocks={} candidates={}", blocks.size(),
            candidates.size());
  node_of_layer_.assign(network.layers.size(), -1);
  spread_.resize(network.layers.size());
  for (std::size_t node = 0; node < blocks.size(); ++node) {
    for (const LayerIndex layer : blocks[node].layers)
      node_of_layer_[static_cast<std::size_t>(layer)] = static_cast<int>(node);
    for (const Decomposition& root : candidates[node]) {
      const std::vector<Decomposition> layers = spread(network, blocks[node], root);
      for (std::size_t i = 0; i < layers.size(); ++i)
        spread_[static_cast<std::size_t>(blocks[node].layers[i])].push_back(layers[i]);
    }
    node_costs_.emplace_back(candidates[node].size(), nullptr);
  }
  find_edges();
  edge_costs_.resize(edges_.size());
}

void PlanTable::find_edges() {
  std::map<std::pair<int, int>, std::size_t> edge_of;
  for (LayerIndex consumer = 0; consumer < network_.size(); ++consumer) {
    const auto& inputs = network_.layer(consumer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const int from = node_of_layer_[static_cast<std::size_t>(inputs[input])],
                to = node_of_layer_[static_cast<std::size_t>(consumer)];
      if (from < 0 || to < 0 || from == to) continue;
      const auto [found, fresh] =
          edge_of.try_emplace({std::min(from, to), std::max(from, to)}, edges_.size());
      if (fresh) {
        edges_.push_back({std::min(from, to), std::max(from, to)});
        layer_edges_.emplace_back();
      }
      layer_edges_[found->second].push_back({inputs[input], consumer, input, from < to});
    }
  }
}

std::string PlanTable::node_name(int node) const {
  return network_.layer(blocks_[static_cast<std::size_t>(node)].root()).name;
}

const LayerCost& PlanTable::layer_cost(int node, int candidate) const {
  const LayerCost*& cost =
      node_costs_[static_cast<std::size_t>(node)][static_cast<std::size_t>(candidate)];
  if (!cost)
    cost = &costs_.block(blocks_[static_cast<std::size_t>(node)], decomposition(node, candidate));
  return *cost;
}

Bytes PlanTable::node_memory(int node, int candidate) const {
  const LayerCost& cost = layer_cost(node, candidate);
  return cost.persistent + cost.saved;
}

const Decomposition& PlanTable::decomposition_of(LayerIndex layer, int candidate) const {
  return spread_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(candidate)];
}

Seconds PlanTable::edge_cost(int edge, int from_candidate, int to_candidate) const {
  const auto e = static_cast<std::size_t>(edge);
  const std::int64_t pair = std::int64_t{from_candidate} * candidates(edges_[e].to) + to_candidate;
  const auto [found, fresh] = edge_costs_[e].try_emplace(pair);
  if (!fresh) return found->second;
  Seconds seconds{};
  for (const LayerEdge& between : layer_edges_[e]) {
    const int producer = between.forward ? from_candidate : to_candidate,
              consumer = between.forward ? to_candidate : from_candidate;
    seconds +=
        costs_.edge(between.producer, decomposition_of(between.producer, producer),
                    between.consumer, between.input, decomposition_of(between.consumer, consumer));
  }
  return found->second = seconds;
}

}  // namespace stratplan
