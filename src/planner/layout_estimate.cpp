#include "planner/layout_estimate.hpp"

#include <algorithm>

#include "model/base/index.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "planner/agreements.hpp"
#include "search/dense_table.hpp"

namespace stratplan {

LayoutEstimates::LayoutEstimates(const Network& network, const std::vector<Block>& blocks,
                                 const Execution& execution, const MachineProfile& machine)
    : network_(network), blocks_(blocks), execution_(execution), machine_(machine) {
  const std::vector<int> layers = layer_classes(network, execution);
  for (const Block& block : blocks) classes_.push_back(class_of(network, layers, block));
}

LayoutEstimate LayoutEstimates::of(const LayerDecompositions& layers) {
  LayoutEstimate sum;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const LayoutEstimate own =
        of_block(block, layers[static_cast<std::size_t>(blocks_[block].root())]);
    sum.step += own.step;
    sum.kernels += own.kernels;
    sum.memory += own.memory;
  }
  return sum;
}

LayoutEstimate LayoutEstimates::of_block(std::size_t block, const Decomposition& root) {
  const auto [found, fresh] = known_.try_emplace({classes_[block], root});
  if (!fresh) return found->second;
  const ClosedFormBlockCost& model =
      models_.try_emplace(classes_[block], network_, blocks_[block], execution_, machine_)
          .first->second;
  const BlockPieces pieces = model.pieces(root);
  const Seconds kernels = pieces.forward + pieces.backward + pieces.update;
  Seconds step = kernels + machine_.step_overhead.median * static_cast<double>(pieces.ops);
  for (const BlockCollective& collective : pieces.collectives) step += price(collective, root.grid);
  return found->second = {step, kernels, pieces.persistent + pieces.saved};
}

Seconds LayoutEstimates::price(const BlockCollective& collective, const ProcessGrid& grid) {
  const GroupShape shape = shape_of_group(collective, grid);
  return collective_cost(collective.op, collective.type, collective.bytes, shape,
                         machine_.placement(grid.ranks()), machine_)
             .seconds *
         collective.times;
}

GroupShape LayoutEstimates::shape_of_group(const BlockCollective& collective,
                                           const ProcessGrid& grid) {
  std::vector<Dim> dims;
  for (const Dim dim : all_dims)
    if (collective.dims.contains(dim)) dims.push_back(dim);
  const auto [found, fresh] = shapes_.try_emplace({grid, dims, collective.samples});
  if (!fresh) return found->second;
  std::vector<int> group = grid.group(0, dims);
  if (collective.samples > 0)
    std::erase_if(group, [&](int rank) { return grid.index(Dim::N, rank) >= collective.samples; });
  return found->second = shape_of(group, machine_.placement(grid.ranks()));
}

std::vector<Decomposition> leanest_roots(const Network& network, const std::vector<Block>& blocks,
                                         const Topology& topology, LayoutEstimates& estimates) {
  std::vector<std::vector<Decomposition>> legal;
  for (const Block& block : blocks) legal.push_back(candidates(network, block, topology).legal);
  const std::vector<Agreement> agreements = keep_agreeable(network, blocks, legal);
  DenseTable table;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    if (legal[block].empty()) return {};
    DenseTable::Node node;
    for (const Decomposition& root : legal[block]) {
      const LayoutEstimate estimate = estimates.of_block(block, root);
      // A byte weighs as much as a second, so time decides only between equal candidates.
      node.cost.push_back(static_cast<double>(estimate.memory.value) + estimate.step.value);
    }
    table.add_node(std::move(node));
  }
  const auto leanest = search(table, agreements);
  if (!leanest) return {};
  std::vector<Decomposition> roots;
  for (std::size_t block = 0; block < blocks.size(); ++block)
    roots.push_back(legal[block][at(leanest->assignment[block])]);
  return roots;
}

namespace {

/// Returns the names of the layer that a block recomputes, if any, and of the inputs that the block
/// loads again.
std::vector<std::string> names_of(const Network& network, const Block& block, LayerIndex recomputed,
                                  const std::set<std::string>& all) {
  std::vector<std::string> names;
  if (recomputed >= 0) names.push_back(network.layer(recomputed).name);
  for (const LayerIndex layer : block.layers)
    for (const LayerIndex input : network.layer(layer).inputs)
      if (network.layer(input).is_data() && all.contains(network.layer(input).name))
        names.push_back(network.layer(input).name);
  return names;
}

}  // namespace

std::vector<Remaking> remakings(const Network& network, const std::vector<Block>& blocks,
                                const LayerDecompositions& layers, const Execution& execution,
                                const MachineProfile& machine) {
  Execution all = execution;
  all.recompute = layers_to_recompute(network);
  LayoutEstimates keeping(network, blocks, execution, machine),
      remaking(network, blocks, all, machine);
  const std::vector<LayerIndex> recomputed = recomputable(network, blocks);
  std::vector<Remaking> found;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    const Decomposition& root = layers[static_cast<std::size_t>(blocks[block].root())];
    const LayoutEstimate kept = keeping.of_block(block, root),
                         made = remaking.of_block(block, root);
    if (kept.memory <= made.memory) continue;
    found.push_back({names_of(network, blocks[block], recomputed[block], all.recompute),
                     kept.memory - made.memory, made.step - kept.step});
  }
  const auto yield = [](const Remaking& one) {
    return static_cast<double>(one.saved.value) / std::max(one.takes.value, 1e-12);
  };
  std::ranges::stable_sort(found, std::ranges::greater{}, yield);
  return found;
}

}  // namespace stratplan
