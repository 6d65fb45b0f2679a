// The times at which the parameter schedule acts on the buffers of lowering_parameters.cpp: values
// are gathered when they are read, gradients summed when they are complete, and updated at the end.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/sharding.hpp"

namespace stratplan {

/// If only a share of the gradients is kept, whole gradients get a new buffer in every micro-batch.
/// This buffer lives from the first gradient to the reduction.
void Lowering::begin_buckets() {
  gradient_sums_ = unbegun_sums_;
  for (PlacedBucket& placed : buckets_) {
    placed.gathered = {};
    placed.more_gradients = placed.narrow_gradient = placed.narrow_share = -1;
    if (!placed.bucket.trained || !schedule_.shares(placed.bucket, 2)) continue;
    placed.complete = 0;
    placed.gradient = add_flat(fmt::format("gradients of group {}", placed.bucket.index),
                               TensorClass::ParameterGradient, placed.bucket.elements, -1);
    place_slices(placed, placed.gradient, &ParameterSlice::gradient, "d ");
  }
}

/// Returns the buffer of a parameter's value. With sharded parameters, the first read of a bucket
/// gathers all its values, once in the forward phase and once in the backward phase.
BufferId Lowering::value_of(std::size_t p) {
  const ParameterSlice& slice = program.parameters[p];
  PlacedBucket& placed = placed_bucket(p);
  const Bucket& bucket = placed.bucket;
  if (!schedule_.shares(bucket, 3) || placed.gathered == phase_) return slice.value;
  placed.gathered = phase_;
  placed.value = add_flat(fmt::format("parameters of group {}", bucket.index),
                          TensorClass::Parameter, bucket.elements, -1);
  place_slices(placed, placed.value, &ParameterSlice::value, "");
  schedule_.gather(bucket, slice.layer, Stream::Halo, *this);
  return slice.value;
}

/// Returns the weights that a contraction reads, in the type of activations. If the weights have
/// another type, the first op that reads weights of a bucket converts the whole bucket.
BufferId Lowering::weights_of(LayerIndex index) {
  const std::size_t p = place_of(index, ParameterRole::Weights);
  const BufferId weights = value_of(p);
  if (!schedule_.converts()) return weights;
  PlacedBucket& placed = placed_bucket(p);
  const auto narrow_name = [&](BufferId of) {
    return fmt::format("{} as {}", program.buffer(of).name,
                       name_of(execution_.precision.activations));
  };
  if (placed.narrowed != placed.value) {
    placed.narrowed = placed.value;
    placed.narrow = add_flat(narrow_name(placed.value), TensorClass::Parameter,
                             placed.bucket.elements, -1, execution_.precision.activations);
    // Ops read the copy until the end of the backward phase, so it lives as long as the values.
    program.buffer(placed.narrow).persistent = program.buffer(placed.value).persistent;
    if (!placed.elsewhere) schedule_.convert(placed.bucket, index, *this);
  }
  return add_slice(placed.narrow, slices_[p].begin, narrow_name(weights), slices_[p].region, index);
}

/// Whether this rank's gradient of a layer's parameter is a term of the sum over the members. Of
/// ranks that repeat the layer's work, only the first contributes to a shared parameter.
bool Lowering::contributes(LayerIndex index, ParameterRole role) const {
  if (!network_.is_shared(index, role)) return true;
  const Distribution& tensor = distribution_of(index, role);
  return tensor.group(state(index).rank, tensor.dims_with(Role::Redundant)).front() == program.rank;
}

/// Whether a kernel makes nothing but gradients to which this rank does not contribute.
bool Lowering::has_no_use(const KernelPass& pass) const {
  return !pass.writes.empty() && std::ranges::all_of(pass.writes, [&](const Use& use) {
    return use.role == Use::Role::ParameterGradient &&
           !contributes(use.layer, static_cast<ParameterRole>(use.which));
  });
}

/// Returns the buffer into which a layer's kernel writes its gradient of a parameter. The first
/// layer that contributes writes the parameter's own gradient. Gradients of other layers are added
/// to it. Once all layers are done, everybody reads that sum. A kernel may write the gradient of a
/// parameter that is not trained, which no op reads.
BufferId Lowering::gradient_buffer(LayerIndex index, ParameterRole role) {
  const std::size_t p = place_of(index, role);
  const GradientSum& sum = gradient_sums_[p];
  const bool begins = sum.users_left == 0 || (contributes(index, role) && !sum.begun);
  if (network_.trains(index, role) && begins) return program.parameters[p].gradient;
  const auto [found, fresh] = state(index).other_gradients.try_emplace(role, -1);
  if (fresh)
    found->second = add_buffer(fmt::format("d {}.{}", layer(index).name, name_of(role)),
                               TensorClass::ParameterGradient, slices_[p].region, index);
  return found->second;
}

/// Called when a layer's own gradient of a parameter is complete.
void Lowering::add_gradient(LayerIndex index, ParameterRole role) {
  const std::size_t p = place_of(index, role);
  GradientSum& sum = gradient_sums_[p];
  const BufferId all = program.parameters[p].gradient;
  if (contributes(index, role)) {
    if (sum.begun) copy(index, gradient_buffer(index, role), all, slices_[p].region, true);
    sum.begun = true;
  }
  if (--sum.users_left > 0) return;
  if (!sum.begun)
    add_kernel(index, fill_kernel(slices_[p].region.elements(), DataType::F32), {}, {all});
  gradient_complete(p);
}

void Lowering::gradient_complete(std::size_t p) {
  const BucketSlice& slice = slices_[p];
  PlacedBucket& placed = placed_bucket(p);
  if (placed.elsewhere) return;
  const Bucket& bucket = placed.bucket;
  schedule_.accumulate(bucket, slice, *this);
  if (!schedule_.shares(bucket, 2) && !last_micro_batch()) return;
  SP_ASSERT(placed.complete == slice.begin,
            "a gradient is completed out of order: the bucket has {} complete elements, but the "
            "gradient's "
            "slice begins at element {}",
            placed.complete, slice.begin);
  placed.complete += padded_slice(slice.region.elements());
  if (schedule_.shares(bucket, 2)) {
    const bool last = placed.complete == bucket.filled;
    schedule_.fill_gap(bucket, slice.layer, slice.begin + slice.region.elements(),
                       last ? bucket.elements : placed.complete, *this);
    if (!last) return;
    placed.reduced = bucket.filled;
    return schedule_.reduce_to_shares(bucket, slice.layer, *this);
  }
  const std::int64_t quantum = ParameterSchedule::quantum_of_parts(bucket),
                     wanted = execution_.bucket_bytes.value / size_of(DataType::F32),
                     piece = schedule_.shares(bucket, 1)
                                 ? bucket.filled
                                 : std::max(wanted / quantum * quantum, quantum);
  while (placed.complete - placed.reduced >= piece)
    reduce_up_to(placed, placed.reduced + piece, slice.layer);
}

/// Parts of replicas are equal up to the bucket's end, padding included.
void Lowering::reduce_up_to(PlacedBucket& placed, std::int64_t element, LayerIndex index) {
  if (placed.reduced == element) return;
  const std::int64_t end = element == placed.bucket.filled ? placed.bucket.summed() : element;
  schedule_.reduce(placed.bucket, index, placed.reduced, end, *this);
  placed.reduced = element;
}

void Lowering::update() {
  for (PlacedBucket& placed : buckets_) {
    if (!is_updated(placed)) continue;
    SP_ASSERT(placed.complete == placed.bucket.filled,
              "the gradients of a bucket are incomplete: {} of {} elements", placed.complete,
              placed.bucket.filled);
    reduce_up_to(placed, placed.bucket.filled, program.parameters[placed.parameters.back()].layer);
  }
  phase_ = Phase::Update;
  SP_ASSERT(!check_sharding(network_.training, execution_.sharding),
            "the optimizer {} does not support sharding", name_of(network_.training.optimizer));
  if (!participants_.contains(program.rank)) return;
  for (const PlacedBucket& placed : buckets_)
    if (is_updated(placed)) schedule_.widen_sums(placed.bucket, *this);
  const bool scales = schedule_.scales_loss(),
             has_loss = loss_is_placed_;  // ops that exist once per step belong to the last loss
  if (scales) {
    overflows_ = add_flat("overflows", TensorClass::Statistics, 1, -1, DataType::F64);
    if (has_loss) schedule_.begin_overflows(*this);
    for (const PlacedBucket& placed : buckets_)
      if (is_updated(placed)) schedule_.unscale(placed.bucket, *this);
    if (has_loss) schedule_.sum_overflows(*this);
  }
  if (network_.training.optimizer == OptimizerKind::Lars)
    update_by_tensor();
  else
    for (const PlacedBucket& placed : buckets_)
      if (is_updated(placed)) schedule_.update(placed.bucket, *this);
  update_running();
  if (scales && has_loss) schedule_.adjust_loss_scale(*this);
  keep_shares();
}

void Lowering::update_by_tensor() {
  squared_norms();
  for (std::size_t p = 0; p < slices_.size(); ++p)
    if (is_updated(placed_bucket(p))) schedule_.update(slices_[p], *this);
}

/// Computes the squared norms of value and gradient for each parameter with a trust ratio. If
/// tensors are split, one all-reduce for all tensors adds up the ranks' terms. Of the ranks that
/// hold the same block, only the first contributes a term.
void Lowering::squared_norms() {
  std::int64_t tensors = 0;
  const auto has_trust = [&](std::size_t p) {
    return schedule_.has_trust(slices_[p]) && is_updated(placed_bucket(p));
  };
  for (std::size_t p = 0; p < slices_.size(); ++p) tensors += has_trust(p);
  norms_.assign(slices_.size(), -1);
  if (tensors == 0) return;
  all_norms_ = add_flat("squared norms", TensorClass::Statistics, 2 * tensors, -1, DataType::F64);
  const bool split = std::ranges::any_of(states_, [](const std::unique_ptr<State>& each) {
    return each && each->distributions.weights &&
           !each->distributions.weights->dims_with(Role::Block).empty();
  });
  if (split) schedule_.begin_norms(tensors, *this);
  std::int64_t tensor = 0;
  for (std::size_t p = 0; p < slices_.size(); ++p) {
    if (!has_trust(p)) continue;
    norms_[p] = add_slice(all_norms_, 2 * tensor++,
                          "squared norms of " + program.parameters[p].name(network_), flat(2),
                          slices_[p].layer);
    const Distribution& weights = *state(slices_[p].layer).distributions.weights;
    DimList copies = weights.dims_with(Role::Gathered);
    for (const Dim dim : weights.dims_with(Role::Redundant)) copies.push_back(dim);
    if (split && weights.group(state(slices_[p].layer).rank, copies).front() != program.rank)
      continue;
    schedule_.take_norms(slices_[p], *this);
  }
  if (split) schedule_.sum_norms(*this);
}

}  // namespace stratplan
