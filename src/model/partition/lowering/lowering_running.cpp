// Running statistics of batch normalizations: their buffers, and their updates.
//
// The mean and variance of a step are averages over its statistics sets. Each rank contributes to
// the average of each of its sets, in proportion to the samples and positions that it holds of the
// set. So the contributions have the same sum under every plan and number of micro-batches. One
// all-reduce adds up the contributions of all layers that lie on the same ranks. It comes after the
// gradients' reductions.
#include <algorithm>

#include "model/partition/lowering/lowering.hpp"

namespace stratplan {

/// Returns the persistent buffer of a batch normalization's running statistics. Makes it for the
/// first layer of those that share it.
BufferId Lowering::running_buffer(LayerIndex index) {
  const LayerIndex first = network_.first_running_user(index);
  for (const RunningStatistics& made : program.running)
    if (made.layer == first) return made.value;
  const Distribution& channels = *state(index).distributions.channels;
  const Region region = channels.owned(state(index).rank);
  const BufferId made = add_flat(layer(index).name + ".running", TensorClass::Parameter,
                                 2 * region.elements(), index);
  program.buffer(made).persistent = true;
  program.running.push_back({first, region, channels.shape, made});
  return made;
}

/// Adds the running statistics of batch normalizations. Layers whose moments are summed over the
/// same ranks share one buffer, in which their moments follow each other.
void Lowering::add_running(const std::vector<LayerIndex>& backward_order) {
  for (const LayerIndex index : backward_order) {
    const int rank = state(index).rank;
    if (layer(index).kind != LayerKind::BatchNorm || rank < 0 || !network_.keeps_running(index))
      continue;
    state(index).running = running_buffer(index);
    if (network_.momentum_of(index) == 0) continue;
    const Distribution& channels = *state(index).distributions.channels;
    const std::vector<int> ranks = channels.group(rank, channels.dims_with(Role::Gathered));
    auto group = std::ranges::find(running_groups_, ranks, &RunningGroup::ranks);
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

/// Layers that share running statistics update them in the order of the forward phase. Their
/// updates follow the last sum of moments.
void Lowering::update_running() {
  std::vector<LayerIndex> sharing;
  for (std::size_t group = 0; group < running_groups_.size(); ++group) {
    const RunningGroup& running = running_groups_[group];
    schedule_.sum_moments(static_cast<int>(group), running.layers.back(), {},
                          program.buffer(running.moments).region.elements(), *this);
    for (const LayerIndex index : running.layers)
      layer(index).running < 0 ? schedule_.average(site_of(index), *this)
                               : sharing.push_back(index);
  }
  std::ranges::sort(sharing);
  for (const LayerIndex index : sharing) schedule_.average(site_of(index), *this);
}

}  // namespace stratplan
