// Running statistics of batch normalization: what a step adds to them, and inference with them.
//
// A step's mean and variance are those of its sets, averaged. Each rank gives its share: of every set in its buffer as much as it has of the set's samples and
// positions. So the shares add up to the same on any plan, and over micro-batches; those of all layers with the same ranks travel in one all-reduce behind the
// gradients'.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"

namespace stratplan {

/// Where they lie: persistent, one buffer a layer; the moments of a step one after the other, by the ranks that they are summed over.
void Lowering::add_running(const std::vector<LayerIndex>& backward_order) {
  if (network_.running_momentum == 0) return;
  for (const LayerIndex index : backward_order) {
    if (layer(index).kind != LayerKind::BatchNorm) continue;
    const Distribution& channels = *state(index).distributions.channels;
    const Region region = channels.owned(program.rank);
    state(index).running = add_flat(layer(index).name + ".running", TensorClass::Parameter,
                                    2 * region.elements(), index);
    program.buffer(state(index).running).persistent = true;
    program.running.push_back({index, region, channels.shape, state(index).running});
    const std::vector<int> ranks =
        channels.grid.group(program.rank, channels.dims_with(Role::Gathered));
    auto group = std::find_if(running_groups_.begin(), running_groups_.end(),
                              [&](const RunningGroup& each) { return each.ranks == ranks; });
    if (group == running_groups_.end())
      group = running_groups_.insert(group, RunningGroup{ranks, {}, -1});
    group->layers.push_back(index);
  }
  if (infers_) return;
  for (RunningGroup& group : running_groups_) {
    const auto elements = [&](LayerIndex index) {
      return program.buffer(state(index).running).region.elements();
    };
    std::int64_t all = 0;
    for (const LayerIndex index : group.layers) all += elements(index);
    group.moments = add_flat("moments", TensorClass::Statistics, all, -1, DataType::F64);
    std::int64_t element = 0;
    for (const LayerIndex index : group.layers) {
      state(index).moments = add_slice(group.moments, element, layer(index).name + ".moments",
                                       program.buffer(state(index).running).region, index);
      element += elements(index);
    }
  }
}

void Lowering::update_running() {
  for (const RunningGroup& group : running_groups_) {
    const LayerIndex last = group.layers.back();
    CollectiveStep collective{Collective::AllReduce,
                              group.ranks,
                              DataType::F64,
                              0,
                              program.buffer(group.moments).region.elements(),
                              {}};
    add_collective(last, Track::Gradient, std::move(collective), group.moments, group.moments);
    for (const LayerIndex index : group.layers) {
      Kernel kernel = site_of(index).kernel(KernelKind::RunningAverage);
      kernel.scalar = network_.running_momentum;
      add_update(index, kernel, {state(index).moments, state(index).running},
                 {state(index).running});
    }
  }
}

}  // namespace stratplan
