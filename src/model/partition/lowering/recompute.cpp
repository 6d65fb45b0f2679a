#include "model/partition/lowering/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/partition/layers/backward_reads.hpp"

namespace stratplan {
namespace {

/// Whether `consumer`, the only consumer of layer `index`, is in the block of this layer.
bool follows(const Network& network, LayerIndex index, LayerIndex consumer) {
  const Layer& next = network.layer(consumer);
  return network.layer(index).kind != LayerKind::Input && is_point_wise(next.kind) &&
         std::ranges::max(next.inputs) == index;
}

std::vector<BackwardReads> all_backward_reads(const Network& network) {
  std::vector<BackwardReads> reads;
  for (LayerIndex index = 0; index < network.size(); ++index)
    reads.push_back(backward_reads(network, index));
  return reads;
}

}  // namespace

/// Visits layers from last to first, so that a layer's consumers are marked before the layer.
Recomputation::Recomputation(const Network& network, const std::set<std::string>& names) {
  if (names.empty()) return;
  marks_.resize(network.layers.size());
  for (LayerIndex index = network.size() - 1; index >= 0; --index) {
    const Layer& layer = network.layer(index);
    Mark& here = marks_[static_cast<std::size_t>(index)];
    const bool next_is_dropped =
        here.consumers == 1 && follows(network, index, here.consumer) && dropped(here.consumer);
    here.dropped = names.contains(layer.name) || next_is_dropped;
    const BackwardReads reads = backward_reads(network, index);
    here.recomputed = here.dropped && (here.is_read || reads.output);
    here.reads_input = here.recomputed || reads.inputs;
    for (const LayerIndex producer : layer.inputs) {
      Mark& before = marks_[static_cast<std::size_t>(producer)];
      ++before.consumers;
      before.consumer = index;
      before.is_read = before.is_read || here.reads_input;
    }
  }
}

bool Recomputation::brings_again(LayerIndex consumer, LayerIndex producer) const {
  return dropped(producer) && marks_[static_cast<std::size_t>(consumer)].reads_input;
}

std::optional<Rejection> check_recompute(const Network& network, LayerIndex index) {
  const Layer& layer = network.layer(index);
  if (!is_loss(layer.kind)) return {};
  return Rejection{fmt::format(
      "layer {} cannot be recomputed: a loss makes its gradient in the forward phase", layer.name)};
}

/// A block may recompute its last output if no other block reads that output in the backward phase,
/// neither for gradients nor to recompute its own outputs.
std::vector<LayerIndex> recomputable(const Network& network, const std::vector<Block>& blocks) {
  std::vector<LayerIndex> found(blocks.size(), -1);
  const std::vector<BackwardReads> reads = all_backward_reads(network);
  std::vector<std::size_t> block_of(network.layers.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const LayerIndex layer : blocks[b].layers) block_of[static_cast<std::size_t>(layer)] = b;
  for (std::size_t b = blocks.size(); b-- > 0;) {
    const auto kept_for = [&](LayerIndex consumer) {
      return reads[static_cast<std::size_t>(consumer)].inputs ||
             found[block_of[static_cast<std::size_t>(consumer)]] >= 0;
    };
    std::vector<LayerIndex> layers = blocks[b].layers;
    while (!layers.empty() && is_loss(network.layer(layers.back()).kind)) layers.pop_back();
    if (layers.empty()) continue;
    const bool ends_here = layers.back() == blocks[b].last();
    if (ends_here && std::ranges::any_of(network.consumers(layers.back()), kept_for))
      layers.pop_back();
    const auto is_read = [&](LayerIndex layer) {
      const bool by_next = layer != blocks[b].last() &&
                           reads[static_cast<std::size_t>(network.consumers(layer).front())].inputs;
      return by_next || reads[static_cast<std::size_t>(layer)].output;
    };
    while (!layers.empty() && !is_read(layers.back())) layers.pop_back();
    if (!layers.empty()) found[b] = layers.back();
  }
  return found;
}

std::set<std::string> layers_to_recompute(const Network& network) {
  std::set<std::string> names;
  for (const LayerIndex layer : recomputable(network, fold(network)))
    if (layer >= 0) names.insert(network.layer(layer).name);
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (network.layer(index).kind == LayerKind::Input && output_is_read_backward(network, index))
      names.insert(network.layer(index).name);
  return names;
}

}  // namespace stratplan
