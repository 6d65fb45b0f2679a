// The optimizer's step: once per reduction group over flat buffers, or tensor by tensor where the rate depends on the tensor's norm.
#include <algorithm>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"
#include "model/partition/parameter_buffers.hpp"

namespace stratplan {

Kernel flat_kernel(KernelKind kind, std::int64_t elements) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.x[Axis::C] = kernel.y[Axis::C] = elements;
  return kernel;
}

KernelKind update_kernel(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::Sgd: return KernelKind::Sgd;
    case OptimizerKind::Momentum: return KernelKind::SgdMomentum;
    case OptimizerKind::Nesterov: return KernelKind::SgdNesterov;
    case OptimizerKind::Adam: return KernelKind::Adam;
    case OptimizerKind::AdamW: return KernelKind::AdamW;
    case OptimizerKind::Lars: return KernelKind::Lars;
  }
  SP_ASSERT(false, "optimizer={}", static_cast<int>(optimizer));
  return KernelKind::Sgd;
}

namespace {

/// Scales by the norms of weights and gradient; biases, scales and shifts keep the plain rate, as is usual with LARS (MLPerf's reference does so).
bool has_trust(const ParameterSlice& slice) { return slice.what == ParameterSlice::What::Weights; }

bool is_whole(const ParameterSlice& slice) { return slice.region == whole(slice.global); }

}  // namespace

void Lowering::update_flat(const ReductionGroup& group, BufferId value, BufferId gradient) {
  std::vector<BufferId> reads{value, gradient}, writes{value};
  for (const BufferId state : {group.velocity, group.mean_square}) {
    if (state < 0) continue;
    reads.push_back(state);
    writes.push_back(state);
  }
  add_update(-1,
             flat_kernel(update_kernel(network_.training.optimizer),
                         program.buffer(value).region.elements()),
             std::move(reads), std::move(writes));
}

void Lowering::update_group(const ReductionGroup& group) {
  update_flat(group, group.value, group.gradient);
}

/// Behind it all ranks have all values again, unless those are gathered when they are needed.
void Lowering::update_share(const ReductionGroup& group) {
  Shape run;
  run[Axis::C] = group.share;
  const auto own = [&](BufferId all) {
    return add_slice(all, group.first_of_share, "own share of " + program.buffer(all).name,
                     whole(run), -1);
  };
  const BufferId gradient = shares(group, 2) ? group.gradient_share : own(group.gradient);
  const BufferId value = shares(group, 3) ? group.value_share : own(group.value);
  update_flat(group, value, gradient);
  if (!shares(group, 3)) gather_values(group, value, -1, Track::Gradient);
}

void Lowering::update_by_tensor() {
  const std::vector<BufferId> norms = squared_norms();
  for (std::size_t p = 0; p < program.parameters.size(); ++p) {
    const ParameterSlice& slice = program.parameters[p];
    std::vector<BufferId> reads{slice.value, slice.gradient, slice.velocity};
    if (has_trust(slice)) reads.push_back(norms[p]);
    const KernelKind kind = has_trust(slice) ? KernelKind::Lars : KernelKind::SgdMomentum;
    add_update(-1, flat_kernel(kind, slice.region.elements()), std::move(reads),
               {slice.value, slice.velocity});
  }
}

/// Per parameter with a trust ratio, two sums of squares over the whole tensor. Where tensors are split, the ranks' terms are added up in one
/// all-reduce for all tensors; of the ranks that hold the same block the first contributes it.
std::vector<BufferId> Lowering::squared_norms() {
  const auto tensors =
      static_cast<std::int64_t>(std::ranges::count_if(program.parameters, has_trust));
  std::vector<BufferId> norms(program.parameters.size(), -1);
  if (tensors == 0) return norms;
  const BufferId all =
      add_flat("squared norms", TensorClass::Statistics, 2 * tensors, -1, DataType::F64);
  const bool split = std::ranges::any_of(program.parameters, [](const ParameterSlice& slice) {
    return has_trust(slice) && !is_whole(slice);
  });
  if (split) {
    Kernel zeros = flat_kernel(KernelKind::Fill, 2 * tensors);
    zeros.type = DataType::F64;
    add_kernel(-1, zeros, {}, {all});
  }
  Shape pair;
  pair[Axis::C] = 2;
  std::int64_t tensor = 0;
  for (std::size_t p = 0; p < program.parameters.size(); ++p) {
    const ParameterSlice& slice = program.parameters[p];
    if (!has_trust(slice)) continue;
    norms[p] = add_slice(all, 2 * tensor++, "squared norms of " + slice.name(network_), whole(pair),
                         slice.layer);
    const Distribution& weights = *state(slice.layer).distributions.weights;
    DimList copies = weights.dims_with(Role::Gathered);
    for (const Dim dim : weights.dims_with(Role::Redundant)) copies.push_back(dim);
    if (split && weights.grid.group(program.rank, copies).front() != program.rank) continue;
    add_kernel(-1, flat_kernel(KernelKind::SquaredNorms, slice.region.elements()),
               {slice.value, slice.gradient}, {norms[p]});
  }
  if (split) {
    std::vector<int> ranks(static_cast<std::size_t>(program.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    add_collective(-1, Track::Gradient,
                   {Collective::AllReduce, std::move(ranks), DataType::F64, 0, 2 * tensors, {}},
                   all, all);
  }
  return norms;
}

}  // namespace stratplan
