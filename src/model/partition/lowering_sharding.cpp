// Buckets of parameters of which a rank keeps its share (sharding.hpp): what is gathered when, and what is left of gradients.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"
#include "model/partition/sharding.hpp"

namespace stratplan {

std::optional<Rejection> check_sharding(const Training& training, int sharding) {
  if (sharding == 0 || training.optimizer != OptimizerKind::Lars) return {};
  return Rejection{
      fmt::format("sharding {} needs an optimizer that looks at each element alone: lars takes the "
                  "norms of whole tensors",
                  sharding)};
}

/// From `stage` on, a rank keeps its share of it.
bool Lowering::shares(const ReductionGroup& group, int stage) const {
  return !infers_ && execution_.sharding >= stage && group.ranks.size() > 1;
}

/// Room for shares that are equal, each a multiple of what slices are aligned to.
void Lowering::divide(ReductionGroup& group, std::int64_t aligned_elements) const {
  const auto members = static_cast<std::int64_t>(group.ranks.size());
  const std::int64_t quantum = members * aligned_elements;
  group.elements = (group.elements + quantum - 1) / quantum * quantum;
  group.share = group.elements / members;
  group.first_of_share =
      group.share * (std::ranges::find(group.ranks, program.rank) - group.ranks.begin());
}

/// Of a parameter whose first element is the bucket's `first`: how many elements each member keeps.
std::vector<std::int64_t> Lowering::kept_by_members(const ReductionGroup& group, std::int64_t first,
                                                    std::int64_t elements) {
  std::vector<std::int64_t> kept;
  for (std::int64_t begin = 0; begin < group.elements; begin += group.share)
    kept.push_back(
        intersect(Interval{first, first + elements}, Interval{begin, begin + group.share}).size());
  return kept;
}

/// The run of a parameter that this rank keeps, in the buffer of the rank's share of the bucket.
BufferId Lowering::slice_of_share(const ReductionGroup& group, BufferId share, std::int64_t first,
                                  const ParameterSlice& slice) {
  const Interval mine =
      intersect(Interval{first, first + slice.region.elements()},
                Interval{group.first_of_share, group.first_of_share + group.share});
  Shape run;
  run[Axis::C] = mine.size();
  return add_slice(share, mine.empty() ? 0 : mine.begin - group.first_of_share,
                   fmt::format("share of {}", program.buffer(share).name), whole(run), slice.layer);
}

/// Slices of `whole` for the kernels, where their parameter's `part` is looked up.
void Lowering::place_slices(const ReductionGroup& group, BufferId all,
                            BufferId ParameterSlice::*part, const char* prefix) {
  for (const std::size_t p : group.parameters) {
    ParameterSlice& slice = program.parameters[p];
    slice.*part =
        add_slice(all, first_element_[p], prefix + slice.name(network_), slice.region, slice.layer);
  }
}

/// Gradients that only a share is kept of have room of their own in every micro-batch, from the first that is made to their reduction.
void Lowering::begin_buckets() {
  for (ReductionGroup& group : groups_) {
    group.gathered = {};
    if (!shares(group, 2)) continue;
    group.complete = 0;
    group.gradient = add_flat(fmt::format("gradients of group {}", &group - groups_.data()),
                              TensorClass::ParameterGradient, group.elements, -1);
    place_slices(group, group.gradient, &ParameterSlice::gradient, "d ");
  }
}

/// In the forward phase, and again in the backward phase, all that the bucket's layers read at the first that they read.
BufferId Lowering::value_of(LayerIndex index, ParameterSlice::What what) {
  const ParameterSlice& slice = parameter(index, what);
  ReductionGroup& group = group_of(slice);
  if (!shares(group, 3) || group.gathered == phase_) return slice.value;
  group.gathered = phase_;
  group.value = add_flat(fmt::format("parameters of group {}", &group - groups_.data()),
                         TensorClass::Parameter, group.elements, -1);
  place_slices(group, group.value, &ParameterSlice::value, "");
  gather_values(group, group.value_share, index, Track::Halo);
  return slice.value;
}

void Lowering::gather_values(const ReductionGroup& group, BufferId share, LayerIndex index,
                             Track track) {
  CollectiveStep collective{Collective::AllGather, group.ranks,
                            DataType::F32,         0,
                            group.elements,        std::vector(group.ranks.size(), group.share)};
  add_collective(index, track, std::move(collective), share, group.value);
}

/// What lies behind a gradient, from element `end` up to the next one, travels with it and must be numbers.
void Lowering::scatter_when_complete(ReductionGroup& group, const ParameterSlice& slice,
                                     std::int64_t end) {
  const bool last = group.complete == group.filled;
  Shape gap;
  gap[Axis::C] = (last ? group.elements : group.complete) - end;
  if (gap[Axis::C] > 0) {
    Kernel zeros;
    zeros.kind = KernelKind::Fill;
    zeros.x = zeros.y = gap;
    add_kernel(slice.layer, zeros, {},
               {add_slice(group.gradient, end, "between gradients", whole(gap), slice.layer)});
  }
  if (last) scatter_gradients(group, slice.layer);
}

/// Those of further micro-batches are added to the shares.
void Lowering::scatter_gradients(ReductionGroup& group, LayerIndex index) {
  CollectiveStep collective{Collective::ReduceScatter,
                            group.ranks,
                            DataType::F32,
                            0,
                            group.elements,
                            std::vector(group.ranks.size(), group.share)};
  group.reduced = group.filled;
  if (micro_batch_ == 0)
    return add_collective(index, Track::Gradient, std::move(collective), group.gradient,
                          group.gradient_share);
  const BufferId more =
      add_flat("more gradients", TensorClass::ParameterGradient, group.share, index);
  add_collective(index, Track::Gradient, std::move(collective), group.gradient, more);
  copy(index, more, group.gradient_share, program.buffer(more).region, true);
}

/// What persists of a parameter is where the program says it is.
void Lowering::keep_shares() {
  for (const ReductionGroup& group : groups_) {
    for (const std::size_t p : group.parameters) {
      ParameterSlice& slice = program.parameters[p];
      if (shares(group, 2))
        slice.gradient = slice_of_share(group, group.gradient_share, first_element_[p], slice);
      if (shares(group, 3))
        slice.value = slice_of_share(group, group.value_share, first_element_[p], slice);
    }
  }
}

}  // namespace stratplan
