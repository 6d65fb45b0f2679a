// Parameters: where they lie, when their gradients are reduced, and their update.
//
// All parameters that are reduced over the same ranks lie one after the other in flat buffers (values, gradients, velocities, what else the optimizer
// keeps), in the order in which backward completes them. So a reduction is a range of one buffer, and the optimizer runs once per group.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"
#include "model/partition/parameter_buffers.hpp"
#include "model/partition/sharding.hpp"

namespace stratplan {

std::vector<ParameterSlice> Lowering::parameters_of(LayerIndex index) const {
  using What = ParameterSlice::What;
  const LayerDistributions& made = state(index).distributions;
  const auto slice = [&](What what, const Distribution& tensor) {
    return ParameterSlice{
        .what = what, .layer = index, .region = tensor.owned(program.rank), .global = tensor.shape};
  };
  std::vector<ParameterSlice> slices;
  if (made.weights) slices.push_back(slice(What::Weights, *made.weights));
  if (made.channels && is_contraction(layer(index).kind))
    slices.push_back(slice(What::Bias, *made.channels));
  if (layer(index).kind == LayerKind::PReLU) slices.push_back(slice(What::Slope, *made.channels));
  if (has_statistics(layer(index).kind)) {
    slices.push_back(slice(What::Scale, *made.channels));
    slices.push_back(slice(What::Shift, *made.channels));
  }
  return slices;
}

/// With sharding, that which has not reached the size of a bucket yet.
Lowering::ReductionGroup& Lowering::group_of(const std::vector<int>& ranks) {
  const auto takes_more = [&](const ReductionGroup& group) {
    return group.ranks == ranks && !(shares(group, 1) && group.elements * size_of(DataType::F32) >=
                                                             execution_.bucket_bytes.value);
  };
  const auto found = std::find_if(groups_.begin(), groups_.end(), takes_more);
  if (found != groups_.end()) return *found;
  return groups_.emplace_back(ReductionGroup{.ranks = ranks});
}

void Lowering::add_parameters(const std::vector<LayerIndex>& backward_order) {
  for (const LayerIndex index : backward_order) {
    const LayerDistributions& made = state(index).distributions;
    for (const ParameterSlice& slice : parameters_of(index)) {
      const Distribution& tensor =
          slice.what == ParameterSlice::What::Weights ? *made.weights : *made.channels;
      ReductionGroup& group =
          group_of(tensor.grid.group(program.rank, tensor.dims_with(Role::Gathered)));
      state(index).parameters.push_back(program.parameters.size());
      group.parameters.push_back(program.parameters.size());
      program.parameters.push_back(slice);
      group_of_parameter_.push_back(static_cast<std::size_t>(&group - groups_.data()));
      first_element_.push_back(group.elements);
      group.elements = group.filled = group.elements + padded_slice(slice.region.elements());
    }
  }
  for (std::size_t g = 0; g < groups_.size(); ++g)
    add_group_buffers(groups_[g], static_cast<std::int64_t>(g));
  for (std::size_t p = 0; p < program.parameters.size(); ++p) add_slices(p);
  program.sharding = infers_ ? 0 : execution_.sharding;
  add_loss_scale();
  add_running(backward_order);
}

/// What lives from step to step.
void Lowering::add_group_buffers(ReductionGroup& group, std::int64_t number) {
  if (shares(group, 1)) divide(group, slice_elements);
  const auto add = [&](const char* what, TensorClass tensor_class, int stage) {
    const bool shared = shares(group, stage);
    const BufferId id =
        add_flat(fmt::format("{}{} of group {}", shared ? "share of " : "", what, number),
                 tensor_class, shared ? group.share : group.elements, -1);
    program.buffer(id).persistent = true;
    return id;
  };
  (shares(group, 3) ? group.value_share : group.value) =
      add("parameters", TensorClass::Parameter, 3);
  if (infers_) return;
  const OptimizerKind optimizer = network_.training.optimizer;
  (shares(group, 2) ? group.gradient_share : group.gradient) =
      add("gradients", TensorClass::ParameterGradient, 2);
  if (optimizer != OptimizerKind::Sgd)
    group.velocity = add("velocities", TensorClass::OptimizerState, 1);
  if (optimizer == OptimizerKind::Adam || optimizer == OptimizerKind::AdamW)
    group.mean_square = add("mean squares", TensorClass::OptimizerState, 1);
  if (network_.training.micro_batches > 1 && !shares(group, 2)) {
    group.accumulated = add_flat(fmt::format("accumulated gradients of group {}", number),
                                 TensorClass::ParameterGradient, group.elements, -1);
    program.buffer(group.accumulated).persistent = true;
  }
}

void Lowering::add_slices(std::size_t p) {
  ParameterSlice& slice = program.parameters[p];
  const ReductionGroup& group = groups_[group_of_parameter_[p]];
  const std::string name = slice.name(network_);
  const auto slice_of = [&](BufferId flat, const char* prefix) {
    return flat < 0 ? flat
                    : add_slice(flat, first_element_[p], prefix + name, slice.region, slice.layer);
  };
  const auto slice_of_state = [&](BufferId flat, const char* prefix) {
    return flat >= 0 && shares(group, 1) ? slice_of_share(group, flat, first_element_[p], slice)
                                         : slice_of(flat, prefix);
  };
  slice.value = slice_of(group.value, "");
  slice.gradient = slice_of(group.gradient, "d ");
  slice.velocity = slice_of_state(group.velocity, "v ");
  slice.mean_square = slice_of_state(group.mean_square, "u ");
  accumulated_.push_back(slice_of(group.accumulated, "sum of d "));
  if (!shares(group, 1)) return;
  slice.sharers = group.ranks;
  slice.shares = kept_by_members(group, first_element_[p], slice.region.elements());
}

const ParameterSlice& Lowering::parameter(LayerIndex index, ParameterSlice::What what) {
  for (const std::size_t p : state(index).parameters)
    if (program.parameters[p].what == what) return program.parameters[p];
  SP_ASSERT(false, "layer {} has no parameter {}", layer(index).name, static_cast<int>(what));
  std::abort();
}

Lowering::ReductionGroup& Lowering::group_of(const ParameterSlice& slice) {
  return groups_[group_of_parameter_[static_cast<std::size_t>(&slice - program.parameters.data())]];
}

/// What a contraction reads: the weights, or, where activations are of another type, a copy in that. All of a group are converted when a step first reads one.
BufferId Lowering::weights_of(LayerIndex index) {
  const BufferId weights = value_of(index, ParameterSlice::What::Weights);
  const DataType type = execution_.precision.activations;
  if (type == program.buffer(weights).type) return weights;
  const ParameterSlice& slice = parameter(index, ParameterSlice::What::Weights);
  ReductionGroup& group = group_of(slice);
  if (group.narrowed != group.value) {
    group.narrowed = group.value;
    group.narrow =
        add_flat(fmt::format("{} as {}", program.buffer(group.value).name, name_of(type)),
                 TensorClass::Parameter, group.elements, -1, type);
    program.buffer(group.narrow).persistent =
        program.buffer(group.value).persistent;  // it is read to the end of the backward phase
    convert(index, group.value, group.narrow);
  }
  const auto p = static_cast<std::size_t>(&slice - program.parameters.data());
  return add_slice(group.narrow, first_element_[p],
                   fmt::format("{} as {}", program.buffer(weights).name, name_of(type)),
                   slice.region, index);
}

/// The last micro-batch's gradients are added to those before and go on; the others' are put aside.
void Lowering::gradient_complete(const ParameterSlice& slice) {
  const auto p = static_cast<std::size_t>(&slice - program.parameters.data());
  ReductionGroup& group = group_of(slice);
  if (!shares(group, 2) && !last_micro_batch())
    return copy(slice.layer, slice.gradient, accumulated_[p], slice.region, micro_batch_ > 0);
  if (accumulated_[p] >= 0) copy(slice.layer, accumulated_[p], slice.gradient, slice.region, true);
  SP_ASSERT(group.complete == first_element_[p], "complete={} first={}", group.complete,
            first_element_[p]);
  group.complete += padded_slice(slice.region.elements());
  if (shares(group, 2))
    return scatter_when_complete(group, slice, first_element_[p] + slice.region.elements());
  const std::int64_t bucket =
      shares(group, 1)
          ? group.filled
          : std::max<std::int64_t>(execution_.bucket_bytes.value / size_of(DataType::F32), 1);
  while (group.complete - group.reduced >= bucket)
    reduce_up_to(group, group.reduced + bucket, slice.layer);
}

void Lowering::reduce_up_to(ReductionGroup& group, std::int64_t element, LayerIndex index) {
  if (group.ranks.size() > 1 && element > group.reduced) {
    CollectiveStep collective{Collective::AllReduce,   group.ranks, DataType::F32, group.reduced,
                              element - group.reduced, {}};
    add_collective(index, Track::Gradient, std::move(collective), group.gradient, group.gradient);
  }
  group.reduced = element;
}

void Lowering::update() {
  for (ReductionGroup& group : groups_) {
    SP_ASSERT(group.complete == group.filled, "complete={} filled={}", group.complete,
              group.filled);
    reduce_up_to(group, group.filled, program.parameters[group.parameters.back()].layer);
  }
  phase_ = Phase::Update;
  unscale_gradients();
  SP_ASSERT(!check_sharding(network_.training, execution_.sharding), "optimizer={}",
            name_of(network_.training.optimizer));
  if (network_.training.optimizer == OptimizerKind::Lars)
    update_by_tensor();
  else
    for (const ReductionGroup& group : groups_)
      shares(group, 1) ? update_share(group) : update_group(group);
  update_running();
  adjust_loss_scale();
  keep_shares();
}

}  // namespace stratplan
