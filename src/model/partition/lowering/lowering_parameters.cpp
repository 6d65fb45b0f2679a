// The buffers of parameters. lowering_gradients.cpp says when the parameter schedule acts on them.
//
// All parameters of one group that are reduced over the same ranks follow each other in flat
// buffers (values, gradients, optimizer state), in the order in which backward completes them. So a
// reduction covers a range of one buffer, and the optimizer runs once per bucket.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lowering.hpp"
#include "model/partition/sharding.hpp"

namespace stratplan {

std::optional<Rejection> check_sharding(const Training& training, int sharding) {
  if (sharding == 0 || training.optimizer != OptimizerKind::Lars) return {};
  return Rejection{
      fmt::format("sharding stage {} needs an optimizer that treats each element separately, but "
                  "lars takes the norms of whole tensors",
                  sharding)};
}

/// Returns the layers of this program that read a layer's parameter, ascending.
std::vector<LayerIndex> Lowering::placed_users(LayerIndex index, ParameterRole role) const {
  const Parameter* declared = network_.declared(index, role);
  if (!declared || !declared->shared()) return {index};
  std::vector<LayerIndex> users;
  for (const LayerIndex user : declared->users)
    if (is_placed(user)) users.push_back(user);
  return users;
}

/// Layers that share a parameter may repeat work on different ranks. So its members are all ranks
/// that hold the same block, and nobody repeats the sum. A bias that ranks repeat along C stays
/// whole, because it is too short to be worth a gather.
Lowering::Holders Lowering::holders_of(LayerIndex index, ParameterRole role) const {
  const Distribution& tensor = distribution_of(index, role);
  const int rank = state(index).rank;
  DimList dims = tensor.dims_with(Role::Gathered), repeated;
  if (network_.is_shared(index, role))
    for (const Dim dim : tensor.dims_with(Role::Redundant)) dims.push_back(dim);
  else
    repeated.push_back(Dim::R);
  Holders holders{.members = tensor.group(rank, dims), .replicas = {program.rank}, .sharers = {}};
  const bool trained = !infers_ && network_.trains(index, role),
             is_sharded = schedule_.shares_some(trained);
  if (is_sharded || (trained && holders.members.size() > 1))
    holders.replicas = tensor.group(rank, repeated);
  if (is_sharded)
    for (const int replica : tensor.grid.group(rank, repeated))
      std::ranges::copy(tensor.group(replica, dims), std::back_inserter(holders.sharers));
  return holders;
}

/// Returns the parameters of which the layer is the program's first user. The backward phase
/// completes their gradients when it reaches this layer.
std::vector<ParameterSlice> Lowering::slices_of(LayerIndex index) const {
  const State& at = state(index);
  std::vector<ParameterSlice> slices;
  if (at.rank < 0) return slices;
  for (const auto& [what, global] : layer(index).parameters())
    if (placed_users(index, what).front() == index)
      slices.push_back({.what = what,
                        .layer = index,
                        .region = distribution_of(index, what).owned(at.rank),
                        .global = global});
  return slices;
}

/// Returns the bucket that takes the next parameter with these properties. With sharding, a bucket
/// takes no more parameters once it has reached execution.bucket_bytes.
Lowering::PlacedBucket& Lowering::bucket_of(const Holders& holders, bool trained, int group,
                                            bool elsewhere) {
  const auto takes_more = [&](const PlacedBucket& placed) {
    const bool full =
        placed.bucket.elements * size_of(DataType::F32) >= execution_.bucket_bytes.value;
    return placed.holders == holders && placed.bucket.trained == trained &&
           placed.bucket.group == group && placed.elsewhere == elsewhere &&
           !(schedule_.shares(placed.bucket, 1) && full);
  };
  const auto found = std::ranges::find_if(buckets_, takes_more);
  if (found != buckets_.end()) return *found;
  PlacedBucket placed;
  placed.holders = holders;
  placed.elsewhere = elsewhere;
  placed.bucket.index = static_cast<int>(buckets_.size());
  if (!elsewhere) {
    placed.bucket.members = std::ssize(holders.members);
    placed.bucket.replicas = std::ssize(holders.replicas);
    placed.bucket.replica =
        std::ranges::find(holders.replicas, program.rank) - holders.replicas.begin();
  }
  placed.bucket.trained = trained;
  placed.bucket.group = group;
  return buckets_.emplace_back(std::move(placed));
}

/// Makes a parameter known to the other layers that read it.
void Lowering::share(std::size_t p, const std::vector<LayerIndex>& users) {
  const ParameterSlice& slice = program.parameters[p];
  for (const LayerIndex user : users) {
    if (user == slice.layer) continue;
    SP_ASSERT(state(user).rank >= 0 &&
                  distribution_of(user, slice.what).owned(state(user).rank) == slice.region &&
                  holders_of(user, slice.what) == holders_of(slice.layer, slice.what),
              "layers {} and {} share {}, but their decompositions {} and {} split it differently",
              layer(slice.layer).name, layer(user).name, slice.name(network_),
              state(slice.layer).decomposition.text(), state(user).decomposition.text());
    state(user).parameters.push_back(p);
  }
}

void Lowering::add_parameters(const std::vector<LayerIndex>& backward_order) {
  for (const LayerIndex index : backward_order) {
    for (const ParameterSlice& slice : slices_of(index)) {
      const std::vector<LayerIndex> users = placed_users(index, slice.what);
      const bool elsewhere = network_.first_user(index, slice.what) != index;
      const bool trained = network_.trains(index, slice.what);
      const int group = trained ? network_.group_of(index, slice.what) : -1;
      PlacedBucket& placed = bucket_of(holders_of(index, slice.what), trained, group, elsewhere);
      Bucket& bucket = placed.bucket;
      const std::size_t p = program.parameters.size();
      state(index).parameters.push_back(p);
      placed.parameters.push_back(p);
      program.parameters.push_back(slice);
      share(p, users);
      slices_.push_back({slice.layer, slice.what, slice.region, bucket.elements});
      // In the backward phase, layers that are not part of the program come first.
      unbegun_sums_.push_back(
          {users.size(), network_.last_user(index, slice.what) != users.back()});
      bucket_of_parameter_.push_back(bucket.index);
      bucket.elements = bucket.filled = bucket.elements + padded_slice(slice.region.elements());
    }
  }
  for (PlacedBucket& placed : buckets_) add_buffers(placed);
  for (std::size_t p = 0; p < program.parameters.size(); ++p) add_slices(p);
  program.sharding = infers_ ? 0 : execution_.sharding;
  if (schedule_.scales_loss() && participants_.contains(program.rank)) {
    program.loss_scale = add_flat("loss scale", TensorClass::OptimizerState, 2, -1, DataType::F64);
    program.buffer(program.loss_scale).persistent = loss_is_placed_;
  }
  add_running(backward_order);
}

/// Adds the bucket's buffers that live from step to step.
void Lowering::add_buffers(PlacedBucket& placed) {
  Bucket& bucket = placed.bucket;
  const auto shares = [&](int stage) { return schedule_.shares(bucket, stage); };
  if (shares(1) || bucket.in_parts()) schedule_.divide(bucket);
  if (shares(1)) {
    const std::vector<int>& sharers = placed.holders.sharers;
    placed.first_of_share =
        bucket.share * (std::ranges::find(sharers, program.rank) - sharers.begin());
  }
  const auto persistent = [&](std::string name, TensorClass tensor_class, std::int64_t elements) {
    const BufferId id = add_flat(std::move(name), tensor_class, elements, -1);
    program.buffer(id).persistent = !placed.elsewhere;
    return id;
  };
  const auto add = [&](const char* what, TensorClass tensor_class, int stage) {
    return persistent(
        fmt::format("{}{} of group {}", shares(stage) ? "share of " : "", what, bucket.index),
        tensor_class, shares(stage) ? bucket.share : bucket.elements);
  };
  (shares(3) ? placed.value_share : placed.value) = add("parameters", TensorClass::Parameter, 3);
  if (infers_ || !bucket.trained) return;
  (shares(2) ? placed.gradient_share : placed.gradient) =
      add("gradients", TensorClass::ParameterGradient, 2);
  if (placed.elsewhere) return;
  if (schedule_.states() > 0) placed.velocity = add("velocities", TensorClass::OptimizerState, 1);
  if (schedule_.states() > 1)
    placed.mean_square = add("mean squares", TensorClass::OptimizerState, 1);
  if (network_.training.micro_batches > 1 && !shares(2))
    placed.accumulated = persistent(fmt::format("accumulated gradients of group {}", bucket.index),
                                    TensorClass::ParameterGradient, bucket.elements);
}

void Lowering::add_slices(std::size_t p) {
  ParameterSlice& slice = program.parameters[p];
  const PlacedBucket& placed = placed_bucket(p);
  const bool shared = schedule_.shares(placed.bucket, 1);
  const std::string name = slice.name(network_);
  const auto slice_of = [&](BufferId flat, const char* prefix) {
    return flat < 0 ? flat
                    : add_slice(flat, slices_[p].begin, prefix + name, slice.region, slice.layer);
  };
  const auto slice_of_state = [&](BufferId flat, const char* prefix) {
    return flat >= 0 && shared ? slice_of_share(placed, flat, p) : slice_of(flat, prefix);
  };
  slice.value = slice_of(placed.value, "");
  slice.gradient = slice_of(placed.gradient, "d ");
  slice.velocity = slice_of_state(placed.velocity, "v ");
  slice.mean_square = slice_of_state(placed.mean_square, "u ");
  accumulated_.push_back(slice_of(placed.accumulated, "sum of d "));
  if (!shared) return;
  slice.sharers = placed.holders.sharers;
  slice.shares = kept_by_members(placed.bucket, slices_[p]);
}

/// Returns the number of a parameter's elements that each member keeps.
std::vector<std::int64_t> Lowering::kept_by_members(const Bucket& bucket,
                                                    const BucketSlice& slice) {
  const Interval elements{slice.begin, slice.begin + slice.region.elements()};
  std::vector<std::int64_t> kept;
  for (std::int64_t begin = 0; begin < bucket.elements; begin += bucket.share)
    kept.push_back(intersect(elements, Interval{begin, begin + bucket.share}).size());
  return kept;
}

/// Returns the run of a parameter that this rank keeps, as a slice of the rank's share of the
/// bucket.
BufferId Lowering::slice_of_share(const PlacedBucket& placed, BufferId share, std::size_t p) {
  const BucketSlice& slice = slices_[p];
  const Interval mine =
      intersect(Interval{slice.begin, slice.begin + slice.region.elements()},
                Interval{placed.first_of_share, placed.first_of_share + placed.bucket.share});
  return add_slice(share, mine.empty() ? 0 : mine.begin - placed.first_of_share,
                   fmt::format("share of {}", program.buffer(share).name), flat(mine.size()),
                   slice.layer);
}

/// Sets `part` of each of the bucket's parameters to the parameter's slice of `all`.
void Lowering::place_slices(const PlacedBucket& placed, BufferId all,
                            BufferId ParameterSlice::*part, const char* prefix) {
  for (const std::size_t p : placed.parameters) {
    ParameterSlice& slice = program.parameters[p];
    slice.*part =
        add_slice(all, slices_[p].begin, prefix + slice.name(network_), slice.region, slice.layer);
  }
}

/// Sets the buffers of the program's parameters to the shares that live from step to step. Called
/// after the last op has been appended.
void Lowering::keep_shares() {
  for (const PlacedBucket& placed : buckets_) {
    for (const std::size_t p : placed.parameters) {
      ParameterSlice& slice = program.parameters[p];
      if (placed.bucket.trained && schedule_.shares(placed.bucket, 2))
        slice.gradient = slice_of_share(placed, placed.gradient_share, p);
      if (schedule_.shares(placed.bucket, 3))
        slice.value = slice_of_share(placed, placed.value_share, p);
    }
  }
}

std::size_t Lowering::place_of(LayerIndex index, ParameterRole what) const {
  for (const std::size_t p : state(index).parameters)
    if (program.parameters[p].what == what) return p;
  SP_ASSERT(false, "layer {} has no parameter of kind {}", layer(index).name,
            static_cast<int>(what));
  return 0;
}

Lowering::PlacedBucket& Lowering::placed_bucket(std::size_t p) {
  return buckets_[static_cast<std::size_t>(bucket_of_parameter_[p])];
}

/// Returns the buffer of a tensor that belongs to a parameter or to a bucket.
BufferId Lowering::parameter_buffer(const Use& use) {
  using enum Use::Role;
  const auto parameter = [&] { return place_of(use.layer, static_cast<ParameterRole>(use.which)); };
  switch (use.role) {
    case Parameter: return value_of(parameter());
    case ConvertedWeights: return weights_of(use.layer);
    case ParameterGradient:
      return gradient_buffer(use.layer, static_cast<ParameterRole>(use.which));
    case PutAside: return accumulated_[parameter()];
    case Velocity: return program.parameters[parameter()].velocity;
    case Norms: return norms_[parameter()];
    default: break;
  }
  PlacedBucket& placed = buckets_[static_cast<std::size_t>(use.which)];
  const Bucket& bucket = placed.bucket;
  const auto own_share = [&](BufferId all) {
    return add_slice(all, placed.first_of_share, "own share of " + program.buffer(all).name,
                     flat(bucket.share), -1);
  };
  switch (use.role) {
    case Values:
      if (use.count < 0) return placed.value;
      return add_slice(placed.value, use.begin, "part of parameters", flat(use.count), use.layer);
    case ValueShare:
      if (placed.value_share < 0) placed.value_share = own_share(placed.value);
      return placed.value_share;
    case NarrowValues: return placed.narrow;
    case Gradients:
      if (use.count < 0) return placed.gradient;
      return add_slice(placed.gradient, use.begin, "between gradients", flat(use.count), use.layer);
    case GradientShare:
      if (placed.gradient_share < 0) placed.gradient_share = own_share(placed.gradient);
      return placed.gradient_share;
    case MoreGradients:
      if (placed.more_gradients < 0)
        placed.more_gradients =
            add_flat("more gradients", TensorClass::ParameterGradient, bucket.share, use.layer);
      return placed.more_gradients;
    case NarrowGradients:
      if (placed.narrow_gradient < 0)
        placed.narrow_gradient =
            add_flat("gradients as summed", TensorClass::ParameterGradient, bucket.elements,
                     use.layer, execution_.precision.gradient_sums);
      if (use.count < 0) return placed.narrow_gradient;
      return add_slice(placed.narrow_gradient, use.begin, "run of gradients as summed",
                       flat(use.count), use.layer);
    case NarrowGradientShare:
      if (placed.narrow_share < 0)
        placed.narrow_share =
            add_flat("share of gradients as summed", TensorClass::ParameterGradient, bucket.share,
                     use.layer, execution_.precision.gradient_sums);
      return placed.narrow_share;
    case FirstState: return placed.velocity;
    case SecondState: return placed.mean_square;
    default: break;
  }
  SP_ASSERT(false, "role {} does not belong to a tensor of a parameter or bucket",
            static_cast<int>(use.role));
  return -1;
}

}  // namespace stratplan
