#include "model/partition/block.hpp"

#include <algorithm>
#include <set>

#include "model/base/assert.hpp"

namespace stratplan {

std::vector<Block> fold(const Network& network) {
  std::vector<Block> blocks;
  std::vector<int> block_of_layer(static_cast<std::size_t>(network.size()), -1);
  for (LayerIndex index = 0; index < network.size(); ++index) {
    const Layer& layer = network.layer(index);
    if (layer.kind == LayerKind::Input) continue;
    int home = -1;
    if (is_point_wise(layer.kind)) {
      const LayerIndex latest = *std::max_element(layer.inputs.begin(), layer.inputs.end());
      if (network.layer(latest).output == layer.output && network.consumers(latest).size() == 1)
        home = block_of_layer[static_cast<std::size_t>(latest)];
    }
    if (home < 0) {
      home = static_cast<int>(blocks.size());
      blocks.emplace_back();
    }
    blocks[static_cast<std::size_t>(home)].layers.push_back(index);
    block_of_layer[static_cast<std::size_t>(index)] = home;
  }
  return blocks;
}

std::vector<Decomposition> spread(const Network& network, const Block& block,
                                  const Decomposition& root) {
  std::vector<Decomposition> decompositions{root};
  for (std::size_t i = 1; i < block.layers.size(); ++i)
    decompositions.push_back(inherited(network.layer(block.layers[i - 1]), decompositions.back()));
  return decompositions;
}

std::optional<Rejection> check(const Network& network, const Block& block,
                               const Decomposition& root) {
  Decomposition decomposition = root;
  for (const LayerIndex index : block.layers) {
    if (auto rejection = check(network.layer(index), decomposition)) return rejection;
    decomposition = inherited(network.layer(index), decomposition);
  }
  return {};
}

Candidates candidates(const Network& network, const Block& block, const Topology& topology,
                      const std::function<bool(const ProcessGrid&)>& wanted) {
  Candidates found;
  std::set<Decomposition> seen;
  const bool lands = network.layer(block.root()).mixes_channels();
  for (const ProcessGrid& grid : all_grids(topology, {all_dims.begin(), all_dims.end()})) {
    if (!wanted(grid)) continue;
    for (const OutputLayout output_layout :
         {OutputLayout::ReduceScatter, OutputLayout::AllReduce}) {
      if (output_layout == OutputLayout::AllReduce && !(lands && grid.parts(Dim::C) > 1)) continue;
      const Decomposition decomposition{grid, output_layout};
      if (!seen.insert(decomposition).second) continue;
      if (auto rejection = check(network, block, decomposition))
        found.rejected.push_back(std::move(*rejection));
      else
        found.legal.push_back(decomposition);
    }
  }
  return found;
}

LayerDecompositions spread_all(const Network& network, const std::vector<Block>& blocks,
                               const std::vector<Decomposition>& roots) {
  SP_ASSERT(blocks.size() == roots.size(), "blocks={} roots={}", blocks.size(), roots.size());
  LayerDecompositions all(static_cast<std::size_t>(network.size()));
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<Decomposition> layers = spread(network, blocks[b], roots[b]);
    for (std::size_t i = 0; i < layers.size(); ++i)
      all[static_cast<std::size_t>(blocks[b].layers[i])] = layers[i];
  }
  return all;
}

}  // namespace stratplan
