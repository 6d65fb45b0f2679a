// Parameters: where they lie, when their gradients are reduced, and their update.
//
// All parameters that are reduced over the same ranks lie one after the other in flat buffers (values, gradients, velocities, what else the optimizer
// keeps), in the order in which backward completes them. So a reduction is a range of one buffer, and the optimizer runs once per group.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"

namespace stratplan {

namespace {
/// Slices start at multiples of 64 bytes.
constexpr std::int64_t slice_elements = 16;
constexpr std::int64_t padded(std::int64_t elements) { return (elements + slice_elements - 1) / slice_elements * slice_elements; }
}  // namespace

std::vector<ParameterSlice> Lowering::parameters_of(LayerIndex index) const {
  using What = ParameterSlice::What;
  const LayerDistributions& made = state(index).distributions;
  const auto slice = [&](What what, const Distribution& tensor) {
    return ParameterSlice{.what = what, .layer = index, .region = tensor.owned(program.rank), .global = tensor.shape};
  };
  std::vector<ParameterSlice> slices;
  if (made.weights) slices.push_back(slice(What::Weights, *made.weights));
  if (made.channels && is_contraction(layer(index).kind)) slices.push_back(slice(What::Bias, *made.channels));
  if (layer(index).kind == LayerKind::PReLU) slices.push_back(slice(What::Slope, *made.channels));
  if (has_statistics(layer(index).kind)) {
    slices.push_back(slice(What::Scale, *made.channels));
    slices.push_back(slice(What::Shift, *made.channels));
  }
  return slices;
}

Lowering::ReductionGroup& Lowering::group_of(const std::vector<int>& ranks) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const ReductionGroup& group) { return group.ranks == ranks; });
  if (found != groups_.end()) return *found;
  return groups_.emplace_back(ReductionGroup{.ranks = ranks});
}

void Lowering::add_parameters(const std::vector<LayerIndex>& backward_order) {
  std::vector<std::int64_t> first_element;
  for (const LayerIndex index : backward_order) {
    const LayerDistributions& made = state(index).distributions;
    for (const ParameterSlice& slice : parameters_of(index)) {
      const Distribution& tensor = slice.what == ParameterSlice::What::Weights ? *made.weights : *made.channels;
      ReductionGroup& group = group_of(tensor.grid.group(program.rank, tensor.dims_with(Role::Gathered)));
      state(index).parameters.push_back(program.parameters.size());
      program.parameters.push_back(slice);
      group_of_parameter_.push_back(static_cast<std::size_t>(&group - groups_.data()));
      first_element.push_back(group.elements);
      group.elements += padded(slice.region.elements());
    }
  }
  const OptimizerKind optimizer = network_.training.optimizer;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    ReductionGroup& group = groups_[g];
    group.value = add_flat(fmt::format("parameters of group {}", g), TensorClass::Parameter, group.elements, -1);
    if (infers_) {
      program.buffer(group.value).persistent = true;
      continue;
    }
    group.gradient = add_flat(fmt::format("gradients of group {}", g), TensorClass::ParameterGradient, group.elements, -1);
    if (optimizer != OptimizerKind::Sgd)
      group.velocity = add_flat(fmt::format("velocities of group {}", g), TensorClass::OptimizerState, group.elements, -1);
    if (optimizer == OptimizerKind::Adam || optimizer == OptimizerKind::AdamW)
      group.mean_square = add_flat(fmt::format("mean squares of group {}", g), TensorClass::OptimizerState, group.elements, -1);
    if (network_.training.micro_batches > 1)
      group.accumulated = add_flat(fmt::format("accumulated gradients of group {}", g), TensorClass::ParameterGradient, group.elements, -1);
    for (const BufferId id : {group.value, group.gradient, group.velocity, group.mean_square, group.accumulated})
      if (id >= 0) program.buffer(id).persistent = true;
  }
  for (std::size_t p = 0; p < program.parameters.size(); ++p) {
    ParameterSlice& slice = program.parameters[p];
    const ReductionGroup& group = groups_[group_of_parameter_[p]];
    const std::string name = slice.name(network_);
    const auto slice_of = [&](BufferId flat, const char* prefix) {
      return flat < 0 ? flat : add_slice(flat, first_element[p], prefix + name, slice.region, slice.layer);
    };
    slice.value = slice_of(group.value, "");
    slice.gradient = slice_of(group.gradient, "d ");
    slice.velocity = slice_of(group.velocity, "v ");
    slice.mean_square = slice_of(group.mean_square, "u ");
    accumulated_.push_back(slice_of(group.accumulated, "sum of d "));
  }
  add_running(backward_order);
}

const ParameterSlice& Lowering::parameter(LayerIndex index, ParameterSlice::What what) {
  for (const std::size_t p : state(index).parameters)
    if (program.parameters[p].what == what) return program.parameters[p];
  SP_ASSERT(false, "layer {} has no parameter {}", layer(index).name, static_cast<int>(what));
  std::abort();
}

/// The last micro-batch's gradients are added to those before and go on; the others' are put aside.
void Lowering::gradient_complete(const ParameterSlice& slice) {
  const auto p = static_cast<std::size_t>(&slice - program.parameters.data());
  if (!last_micro_batch()) return copy(slice.layer, slice.gradient, accumulated_[p], slice.region, micro_batch_ > 0);
  if (accumulated_[p] >= 0) copy(slice.layer, accumulated_[p], slice.gradient, slice.region, true);
  ReductionGroup& group = groups_[group_of_parameter_[p]];
  group.complete += padded(slice.region.elements());
  const std::int64_t bucket = std::max<std::int64_t>(execution_.bucket_bytes.value / size_of(DataType::F32), 1);
  while (group.complete - group.reduced >= bucket) reduce_up_to(group, group.reduced + bucket, slice.layer);
}

void Lowering::reduce_up_to(ReductionGroup& group, std::int64_t element, LayerIndex index) {
  if (group.ranks.size() > 1 && element > group.reduced) {
    CollectiveStep collective{Collective::AllReduce, group.ranks, DataType::F32, group.reduced, element - group.reduced, {}};
    add_collective(index, Track::Gradient, std::move(collective), group.gradient, group.gradient);
  }
  group.reduced = element;
}

void Lowering::update() {
  for (ReductionGroup& group : groups_) {
    SP_ASSERT(group.complete == group.elements, "complete={} elements={}", group.complete, group.elements);
    LayerIndex last = -1;
    for (std::size_t p = 0; p < program.parameters.size(); ++p)
      if (&groups_[group_of_parameter_[p]] == &group) last = program.parameters[p].layer;
    reduce_up_to(group, group.elements, last);
  }
  phase_ = Phase::Update;
  if (network_.training.optimizer == OptimizerKind::Lars) update_by_tensor();
  else
    for (const ReductionGroup& group : groups_) update_group(group);
  update_running();
}

}  // namespace stratplan
