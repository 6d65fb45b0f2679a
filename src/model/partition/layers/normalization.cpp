// Batch, instance and group normalization, which normalize by mean and variance. Instance and group
// normalization run as batch normalization with statistics sets of one sample. Such a set is shared
// only by ranks that hold other positions of the same sample.
#include <fmt/format.h>

#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;
using What = ParameterRole;

/// Rejects a group normalization if a block of channels does not consist of whole groups. If a
/// block border cut a group, the group's statistics would need a sum over ranks for this group
/// alone.
std::optional<Illegal> first_cut(const Layer& layer, const Decomposition& decomposition) {
  if (layer.kind != LayerKind::GroupNorm) return {};
  const ProcessGrid& grid = decomposition.grid;
  const std::int64_t group = layer.input[Axis::C] / layer.groups();
  const Distribution home = distribute_with_channels(layer, decomposition).home;
  std::array<int, dim_count> at{};
  int &f = at[static_cast<std::size_t>(Dim::F)], &c = at[static_cast<std::size_t>(Dim::C)];
  for (f = 0; f < grid.parts(Dim::F); ++f)
    for (c = 0; c < grid.parts(Dim::C); ++c)
      if (home.owned(Axis::C, grid.rank_at(at)).begin % group != 0)
        return Illegal{grid.parts(Dim::C) > 1 ? Dim::C : Dim::F,
                       fmt::format("{} cuts groups of {} channels", decomposition.text(), group)};
  return {};
}

enum Tensors { Sums, MoreMoments, GradientSums };

/// Returns the all-reduce of `sums` over the ranks that hold parts of the same statistics sets.
CollectivePass reduction(const StatisticsGroup& group, const Use& sums) {
  if (group.alone) return {.from = sums, .to = sums};
  return {.from = sums,
          .to = sums,
          .dims = {Dim::N, Dim::D, Dim::H, Dim::W},
          .blocks = std::pair(group.first_block, group.last_block)};
}

/// The one set of all samples, to which running statistics belong.
StatisticsGroup running_group(const Site& site) {
  const Shape& shape = site.head().input;
  return {.sets = {.set_samples = shape[Axis::N],
                   .first_sample = site.of_head().home.owned(Axis::N, site.rank).begin,
                   .batch = shape[Axis::N],
                   .positions = shape[Axis::D] * shape[Axis::H] * shape[Axis::W]}};
}

StatisticsGroup group_of(const Site& site) {
  return site.head().normalizes_by_running()
             ? running_group(site)
             : statistics_group(site.network, site.fusion.head, site.of_head(), site.rank);
}

/// Adds the passes that compute the rank's contribution to the step's moments. The step's moments
/// are a mean over all statistics sets. With local statistics, each rank has a set of its own,
/// whose weight is the set's fraction of all elements of a channel.
void contribute_moments(const Site& site, const StatisticsSets& sets, PassSink& passes) {
  const Layer& layer = site.head();
  Kernel kernel = site.kernel(BatchNormMoments);
  const double all = static_cast<double>(layer.input.elements() / layer.input[Axis::C] *
                                         site.network.training.micro_batches);
  kernel.attributes =
      MomentsAttributes{.weight = site.network.local_statistics
                                      ? sets.terms(0) / all
                                      : 1 / static_cast<double>(site.network.statistics_sets()),
                        .sets = sets};
  const Use sums = site.tensor(Sums), moments = site.of(Use::Role::Moments);
  Pass first = site.run(kernel, {sums}, {moments});
  first.occasion = Occasion::First;
  first.kept = true;
  passes.add(first);
  if (site.network.training.micro_batches == 1) return;
  const Use more = site.tensor(MoreMoments);
  const Region region = flat(2 * kernel.x[Axis::C]);
  Pass next = site.run(kernel, {sums}, {more}),
       sum = site.run(copy_kernel(region, region, region, region, DataType::F64, true), {more},
                      {moments});
  next.occasion = sum.occasion = Occasion::AllButFirst;
  next.kept = sum.kept = true;
  passes.declare(more, {"moments", TensorClass::Statistics, region, DataType::F64,
                        Occasion::AllButFirst, true});
  passes.add(next);
  passes.add(sum);
}

void statistics(const Site& site, const StatisticsGroup& group, PassSink& passes) {
  Kernel kernel = site.kernel(BatchNormStatistics);
  kernel.as<NormalizationAttributes>().sets = group.sets;
  const Use sums = site.tensor(Sums);
  passes.declare(sums,
                 {"sums", TensorClass::Statistics, flat(group.sets.sets * 2 * kernel.x[Axis::C]),
                  DataType::F64, Occasion::Each, true});
  Pass add_up = site.run(kernel, {site.input()}, {sums});
  Pass reduce{site.fusion.head, reduction(group, sums)};
  add_up.kept = reduce.kept = true;
  passes.add(add_up);
  passes.add(reduce);
  if (site.network.momentum_of(site.fusion.head) > 0) contribute_moments(site, group.sets, passes);
}

/// Makes the sums that have the running mean and variance as their moments.
void running_statistics(const Site& site, const StatisticsGroup& group, PassSink& passes) {
  Kernel kernel = site.kernel(BatchNormRunningSums);
  kernel.as<NormalizationAttributes>().sets = group.sets;
  const Use sums = site.tensor(Sums);
  passes.declare(sums, {"sums", TensorClass::Statistics, flat(2 * kernel.x[Axis::C]), DataType::F64,
                        Occasion::Each, true});
  Pass pass = site.run(kernel, {site.of(Use::Role::Running)}, {sums});
  pass.kept = true;
  passes.add(pass);
}

/// The index of the fused addition's input that is not the head's output.
std::size_t addend(const Site& site) {
  return site.layer(site.fusion.add).inputs.front() == site.fusion.head ? 1 : 0;
}

/// Adds the kernel that writes the output of the fusion's last layer.
void finish(const Site& site, Kernel kernel, const Use& statistics, PassSink& passes) {
  site.activate(kernel);
  kernel.epilogue().addend = site.fusion.add >= 0;
  std::vector<Use> reads{site.input(), statistics, site.parameter(What::Scale),
                         site.parameter(What::Shift)};
  if (site.fusion.add >= 0)
    reads.push_back({Use::Role::Input, site.fusion.add, static_cast<int>(addend(site))});
  passes.add(site.run(std::move(kernel), std::move(reads), {site.output()}));
}

void forward(const Site& site, PassSink& passes) {
  if (site.infers && site.head().kind == LayerKind::BatchNorm)
    return finish(site, site.kernel(BatchNormInference), site.of(Use::Role::Running), passes);
  const StatisticsGroup group = group_of(site);
  site.head().normalizes_by_running() ? running_statistics(site, group, passes)
                                      : statistics(site, group, passes);
  Kernel kernel = site.kernel(BatchNormForward);
  kernel.as<NormalizationAttributes>().sets = group.sets;
  finish(site, std::move(kernel), site.tensor(Sums), passes);
}

/// Running statistics do not depend on the input, so its gradient has none of the terms that lead
/// through mean and variance. The terms' sums are zero then.
void sum_through_statistics(const Site& site, const StatisticsGroup& group, PassSink& passes) {
  const Use sums = site.tensor(GradientSums);
  if (!site.head().normalizes_by_running())
    return passes.add({site.fusion.head, reduction(group, sums)});
  const std::int64_t elements = 2 * site.kernel(BatchNormBackward).x[Axis::C];
  passes.add(site.run(fill_kernel(elements, DataType::F64), {}, {sums}));
}

/// If an addition and an activation are fused, the addition's other input needs the gradient with
/// respect to the activation's input as a tensor. So BatchNormBackwardSums writes that tensor.
/// Without an addition, BatchNormBackwardSums and BatchNormBackward each compute this gradient
/// while they read dy.
void backward(const Site& site, PassSink& passes) {
  const Fusion& fusion = site.fusion;
  const StatisticsGroup group = group_of(site);
  Kernel kernel = site.kernel(BatchNormBackwardSums);
  kernel.as<NormalizationAttributes>().sets = group.sets;
  site.activate(kernel);
  Epilogue& epilogue = kernel.epilogue();
  const Use x = site.input(), sums = site.tensor(GradientSums);
  Use dy = site.output_gradient();
  passes.declare(sums, {"sums", TensorClass::Statistics,
                        flat(group.sets.sets * 2 * kernel.x[Axis::C]), DataType::F64});
  std::vector<Use> reads{x, dy, site.tensor(Sums)},
      writes{sums, site.parameter_gradient(What::Scale), site.parameter_gradient(What::Shift)};
  if (epilogue.activation) {
    reads.push_back(site.output());
    epilogue.addend = fusion.add >= 0;
    if (epilogue.addend) writes.push_back({Use::Role::InputGradient, fusion.activation});
  }
  passes.add(site.run(kernel, reads, writes));
  if (epilogue.addend) {
    dy = writes.back();
    epilogue = {};
  }
  if (fusion.add >= 0 && site.wants_gradient(fusion.add, addend(site)))
    for (const EdgePass::What what : {EdgePass::What::Send, EdgePass::What::Add})
      passes.add({fusion.head, EdgePass{what, fusion.add, addend(site), dy}});
  if (site.wants_gradient()) {
    sum_through_statistics(site, group, passes);
    kernel.kind = BatchNormBackward;
    reads = {x, dy, site.tensor(Sums), sums, site.parameter(What::Scale)};
    if (epilogue.activation) reads.push_back(site.output());
    passes.add(site.run(kernel, std::move(reads), {site.input_gradient()}));
    passes.add(site.send(0, site.input_gradient()));
    passes.add(site.add(0, site.input_gradient()));
  }
  for (const What what : {What::Scale, What::Shift})
    if (site.trains(what)) passes.add({fusion.head, GradientPass{site.parameter_gradient(what)}});
}

}  // namespace

const LayerFamily normalization{why_not_alike, distribute_with_channels, forward, backward,
                                first_cut};

}  // namespace stratplan::layers
