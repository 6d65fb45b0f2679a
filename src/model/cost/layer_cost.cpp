#include "model/cost/layer_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <variant>

#include "model/base/assert.hpp"
#include "model/base/json/fields.hpp"
#include "model/partition/layers/backward_reads.hpp"

namespace stratplan {

bool kept_by_consumers(const Network& network, const Recomputation& recomputation,
                       LayerIndex layer) {
  const std::vector<LayerIndex> consumers = network.consumers(layer);
  return std::any_of(consumers.begin(), consumers.end(), [&](LayerIndex consumer) {
    return backward_reads(network, consumer).inputs || recomputation.recomputed(consumer);
  });
}

namespace {

struct InnerEdge {
  std::size_t producer = 0, consumer = 0;  ///< indices into Block::layers
  std::size_t input = 0;
};

/// Whether the connection leads from one fusion to another.
bool leads_out(const std::vector<Fusion>& fusions, LayerIndex producer, LayerIndex consumer) {
  return std::none_of(fusions.begin(), fusions.end(), [&](const Fusion& fusion) {
    const std::vector<LayerIndex> layers = fusion.layers();
    return std::count(layers.begin(), layers.end(), producer) > 0 &&
           std::count(layers.begin(), layers.end(), consumer) > 0;
  });
}

std::vector<InnerEdge> inner_edges(const Network& network, const Block& block) {
  std::vector<InnerEdge> edges;
  for (std::size_t consumer = 0; consumer < block.layers.size(); ++consumer) {
    const auto& inputs = network.layer(block.layers[consumer]).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const auto producer = std::find(block.layers.begin(), block.layers.end(), inputs[input]);
      if (producer != block.layers.end())
        edges.push_back(
            {static_cast<std::size_t>(producer - block.layers.begin()), consumer, input});
    }
  }
  return edges;
}

/// Appends a value to a text. Lists start with their length, variants with the index of their
/// alternative, and optional values with whether they are there.
template <class Value>
void append(std::string& text, const Value& value) {
  if constexpr (HasFields<Value>) {
    visit_fields(value, [&](const char*, const auto& member) { append(text, member); });
  } else if constexpr (requires { value.index(); }) {
    append(text, value.index());
    std::visit([&](const auto& held) { append(text, held); }, value);
  } else if constexpr (requires { value.has_value(); }) {
    append(text, static_cast<int>(value.has_value()));
    if (value) append(text, *value);
  } else if constexpr (std::is_enum_v<Value>) {
    append(text, static_cast<int>(value));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    fmt::format_to(std::back_inserter(text), " {}", value);
  } else {
    append(text, std::size(value));
    for (const auto& element : value) append(text, element);
  }
}

/// A text of everything about a layer that can affect the layer's cost. The layer's name and its
/// place in the network are left out.
std::string describe(const Network& network, const Recomputation& recomputation, LayerIndex index) {
  const Layer& layer = network.layer(index);
  std::string text;
  visit_fields(layer, [&](std::string_view name, const auto& value) {
    if (name != "name" && name != "inputs" && name != "declared" && name != "running")
      append(text, value);
  });
  for (const auto& [role, shape] : layer.parameters()) {
    text += fmt::format(" {}", static_cast<int>(network.learning(index, role)));
    if (network.is_shared(index, role))
      text += fmt::format(" shared {} {}", network.first_user(index, role) == index,
                          network.last_user(index, role) == index);
  }
  text += fmt::format(" momentum {} gradient {}", network.momentum_of(index),
                      network.needs_gradient(index));
  for (const LayerIndex input : layer.inputs)
    text += fmt::format(" {}{}{}", network.layer(input).is_data() ? "data" : "layer",
                        network.needs_gradient(input) ? "" : " fixed",
                        recomputation.dropped(input) ? " again" : "");
  text += fmt::format(" {}{}", recomputation.dropped(index) ? "dropped " : "",
                      recomputation.recomputed(index) ? "remade" : "");
  return text + fmt::format(" to {}{}", network.consumers(index).size(),
                            kept_by_consumers(network, recomputation, index) ? " kept" : "");
}

/// The bytes that the program of one fusion keeps from its forward to its backward phase. The
/// buffer named `except` does not count.
Bytes saved_by(const Program& program, const std::string& except) {
  constexpr int forward = 1, backward = 2;
  std::vector<int> used(program.buffers.size(), 0);
  for (const Op& op : program.ops)
    for (const auto* ids : {&op.reads, &op.writes})
      for (const BufferId id : *ids)
        used[static_cast<std::size_t>(id)] |= op.phase == Phase::Forward ? forward : backward;
  Bytes saved{};
  for (std::size_t id = 0; id < used.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (used[id] == (forward | backward) && !buffer.persistent && buffer.inside < 0 &&
        buffer.name != except)
      saved += buffer.bytes();
  }
  return saved;
}

Bytes persistent_of(const Program& program) {
  Bytes bytes{};
  for (const Buffer& buffer : program.buffers)
    if (buffer.persistent && buffer.inside < 0) bytes += buffer.bytes();
  return bytes;
}

/// A block as one rank executes it. `programs` has one program per fusion, in order, then one per
/// edge between fusions.
struct LoweredBlock {
  std::vector<Fusion> fusions;
  std::vector<Program> programs;
};

LoweredBlock lower_block(const Network& network, const Block& block, const Decomposition& root,
                         const Execution& execution, int rank) {
  const std::vector<Decomposition> decompositions = spread(network, block, root);
  LoweredBlock lowered{fuse(network, block, decompositions, execution), {}};
  for (const Fusion& fusion : lowered.fusions) {
    const auto head = std::find(block.layers.begin(), block.layers.end(), fusion.head);
    lowered.programs.push_back(lower_fusion(
        network, fusion, decompositions[static_cast<std::size_t>(head - block.layers.begin())],
        execution, rank));
  }
  for (const InnerEdge& edge : inner_edges(network, block)) {
    const LayerIndex producer = block.layers[edge.producer], consumer = block.layers[edge.consumer];
    if (leads_out(lowered.fusions, producer, consumer))
      lowered.programs.push_back(lower_edge(network, producer, decompositions[edge.producer],
                                            consumer, edge.input, decompositions[edge.consumer],
                                            execution, rank));
  }
  return lowered;
}

}  // namespace

std::vector<Program> block_programs(const Network& network, const Block& block,
                                    const Decomposition& root, const Execution& execution,
                                    int rank) {
  return lower_block(network, block, root, execution, rank).programs;
}

std::vector<int> representative_ranks(const ProcessGrid& grid) {
  constexpr int small_grid = 8;
  std::set<int> ranks;
  if (grid.ranks() <= small_grid) {
    for (int rank = 0; rank < grid.ranks(); ++rank) ranks.insert(rank);
    return {ranks.begin(), ranks.end()};
  }
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const bool representatives = std::all_of(all_dims.begin(), all_dims.end(), [&](Dim dim) {
      const int index = grid.index(dim, rank);
      return index == 0 || (dim != Dim::R && (index == 1 || index + 1 == grid.parts(dim)));
    });
    if (representatives) ranks.insert(rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<int> layer_classes(const Network& network, const Execution& execution) {
  const Recomputation recomputation(network, execution.recompute);
  std::map<std::string, int> known;
  std::vector<int> classes;
  for (LayerIndex index = 0; index < network.size(); ++index)
    classes.push_back(
        known.try_emplace(describe(network, recomputation, index), static_cast<int>(known.size()))
            .first->second);
  return classes;
}

std::string class_of(const Network& network, const std::vector<int>& classes, const Block& block) {
  std::string text;
  for (const LayerIndex layer : block.layers)
    text += fmt::format("{} ", classes[static_cast<std::size_t>(layer)]);
  for (const InnerEdge& edge : inner_edges(network, block))
    text += fmt::format("{}.{}.{} ", edge.producer, edge.consumer, edge.input);
  return text;
}

LayerCosts::LayerCosts(const Network& network, const Execution& execution,
                       const MachineProfile& machine)
    : network_(network),
      execution_(execution),
      machine_(machine),
      recomputation_(network, execution.recompute),
      layer_classes_(layer_classes(network, execution)) {}

OpCost LayerCosts::price(const Op& op, const Program& program) {
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  if (!compute) return cost_of(op, program, machine_);
  const auto [found, fresh] = kernels_.try_emplace(compute->kernel);
  if (fresh) found->second = cost_of(compute->kernel, machine_);
  return found->second;
}

LayerCost LayerCosts::price_block(const Block& block, const Decomposition& root, int rank) {
  const auto [fusions, programs] = lower_block(network_, block, root, execution_, rank);
  LayerCost cost;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& program = programs[i];
    for (const Op& op : program.ops) {
      const OpCost priced = price(op, program);
      const Seconds seconds = priced.seconds + machine_.step_overhead.median;
      const bool communicates = std::holds_alternative<ExchangeOp>(op.body) ||
                                std::holds_alternative<CollectiveOp>(op.body);
      (communicates                  ? cost.communication
       : op.phase == Phase::Forward  ? cost.forward
       : op.phase == Phase::Backward ? cost.backward
                                     : cost.update) += seconds;
      cost.tier = std::max(cost.tier, priced.tier);
    }
    if (i >= fusions.size()) continue;  // edges keep no memory of their own
    const LayerIndex layer = fusions[i].last();
    cost.persistent += persistent_of(program);
    const Bytes saved = saved_by(program, kept_by_consumers(network_, recomputation_, layer)
                                              ? network_.layer(layer).name + ".y"
                                              : std::string());
    // the activations of only one micro-batch are kept at a time
    cost.saved += {saved.value / network_.training.micro_batches};
  }
  return cost;
}

const LayerCost& LayerCosts::block(const Block& block, const Decomposition& root) {
  const auto [found, fresh] =
      blocks_.try_emplace({class_of(network_, layer_classes_, block), root});
  if (!fresh) return found->second;
  for (const int rank : representative_ranks(root.grid)) {
    const LayerCost cost = price_block(block, root, rank);
    const Bytes persistent = std::max(cost.persistent, found->second.persistent),
                saved = std::max(cost.saved, found->second.saved);
    if (rank == 0 || cost.total() > found->second.total()) found->second = cost;
    found->second.persistent = persistent;
    found->second.saved = saved;
  }
  return found->second;
}

Seconds LayerCosts::edge(LayerIndex producer, const Decomposition& from, LayerIndex consumer,
                         std::size_t input, const Decomposition& to) {
  const auto [found, fresh] =
      edges_.try_emplace({layer_class(producer), from, layer_class(consumer), input, to});
  if (!fresh) return found->second;
  std::set<int> ranks;
  for (const ProcessGrid* grid : {&from.grid, &to.grid})
    for (const int rank : representative_ranks(*grid)) ranks.insert(rank);
  for (const int rank : ranks) {
    const Program program =
        lower_edge(network_, producer, from, consumer, input, to, execution_, rank);
    Seconds seconds{};
    for (const Op& op : program.ops)
      seconds += price(op, program).seconds + machine_.step_overhead.median;
    found->second = std::max(found->second, seconds);
  }
  return found->second;
}

}  // namespace stratplan
