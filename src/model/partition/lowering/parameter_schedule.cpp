#include "model/partition/lowering/parameter_schedule.hpp"

#include <numeric>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

using enum KernelKind;

constexpr LayerIndex all_layers = -1;

Pass run(LayerIndex layer, Kernel kernel, std::vector<Use> reads, std::vector<Use> writes) {
  return {layer, KernelPass{std::move(kernel), std::move(reads), std::move(writes)}};
}

/// Runs an optimizer's kernel over parameters of one group.
Pass update_of(int group, Kernel kernel, std::vector<Use> reads, std::vector<Use> writes) {
  KernelPass body{std::move(kernel), std::move(reads), std::move(writes)};
  body.parameter_group = group;
  return {all_layers, std::move(body)};
}

/// All dimensions. A collective along them includes every rank, so that all ranks compute the same
/// result.
const DimList everyone{Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W, Dim::R};

}  // namespace

KernelKind update_kernel(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::Sgd: return Sgd;
    case OptimizerKind::Momentum: return SgdMomentum;
    case OptimizerKind::Nesterov: return SgdNesterov;
    case OptimizerKind::Adam: return Adam;
    case OptimizerKind::AdamW: return AdamW;
    case OptimizerKind::Lars: return Lars;
  }
  SP_ASSERT(false, "there is no update kernel for optimizer {}", static_cast<int>(optimizer));
  return Sgd;
}

int ParameterSchedule::states() const { return optimizer_states(network_.training.optimizer); }

Bytes ParameterSchedule::persistent(const Bucket& bucket) const {
  const auto kept = [&](int stage) {
    return shares(bucket, stage) ? bucket.share : bucket.elements;
  };
  const bool puts_aside = network_.training.micro_batches > 1 && !shares(bucket, 2);
  return Bytes{size_of(DataType::F32)} * (bucket.trained ? kept(3) + kept(2) + kept(1) * states() +
                                                               (puts_aside ? bucket.elements : 0)
                                                         : kept(3));
}

std::int64_t ParameterSchedule::quantum_of_parts(const Bucket& bucket) {
  return bucket.in_parts() ? std::lcm(bucket.replicas, slice_elements) : 1;
}

void ParameterSchedule::divide(Bucket& bucket) const {
  const std::int64_t quantum =
      shares(bucket, 1) ? bucket.sharers() * slice_elements : quantum_of_parts(bucket);
  bucket.elements = (bucket.elements + quantum - 1) / quantum * quantum;
  bucket.share = bucket.elements / bucket.sharers();
}

void ParameterSchedule::gather(const Bucket& bucket, LayerIndex reader, Stream stream,
                               PassSink& passes) const {
  const auto add = [&](const Use& from, const Use& to, bool among_replicas) {
    passes.add({reader, CollectivePass{.op = Collective::AllGather,
                                       .from = from,
                                       .to = to,
                                       .stream = stream,
                                       .among_replicas = among_replicas}});
  };
  const Use share = bucket.of(Use::Role::ValueShare), all = bucket.of(Use::Role::Values),
            part = replicas_part(bucket, Use::Role::Values, all_layers);
  if (bucket.members > 1) add(share, part, false);
  if (bucket.replicas > 1) add(bucket.members > 1 ? part : share, all, true);
}

void ParameterSchedule::convert(const Bucket& bucket, LayerIndex reader, PassSink& passes) const {
  Kernel kernel = flat_kernel(Convert, bucket.elements);
  kernel.type = execution_.precision.activations;
  Pass pass =
      run(reader, kernel, {bucket.of(Use::Role::Values)}, {bucket.of(Use::Role::NarrowValues)});
  if (!shares(bucket, 3)) pass.occasion = Occasion::First;  // values change only in the update
  passes.add(pass);
}

void ParameterSchedule::accumulate(const Bucket& bucket, const BucketSlice& slice,
                                   PassSink& passes) const {
  if (shares(bucket, 2) || network_.training.micro_batches == 1) return;
  const auto copy = [&](const Use& from, const Use& to, bool adds, Occasion occasion) {
    const Region& all = slice.region;
    passes.add({slice.layer,
                KernelPass{copy_kernel(all, all, all, all, DataType::F32, adds), {from}, {to}},
                occasion});
  };
  copy(slice.gradient(), slice.of(Use::Role::PutAside), false, Occasion::First);
  copy(slice.gradient(), slice.of(Use::Role::PutAside), true, Occasion::Between);
  copy(slice.of(Use::Role::PutAside), slice.gradient(), true, Occasion::Last);
}

void ParameterSchedule::fill_gap(const Bucket& bucket, LayerIndex layer, std::int64_t begin,
                                 std::int64_t end, PassSink& passes) const {
  if (end > begin)
    passes.add(run(layer, fill_kernel(end - begin, DataType::F32), {},
                   {bucket.part(Use::Role::Gradients, layer, begin, end - begin)}));
}

void ParameterSchedule::reduce(const Bucket& bucket, LayerIndex layer, std::int64_t begin,
                               std::int64_t end, PassSink& passes) const {
  if (end == begin || bucket.members == 1) return;
  const auto own_of = [&](Use::Role role) {
    return replicas_part(bucket, role, layer, begin, end - begin);
  };
  const Use::Role summed = narrows_sums() ? Use::Role::NarrowGradients : Use::Role::Gradients;
  const Use own = own_of(summed);
  if (narrows_sums())
    passes.add(narrow(own_of(Use::Role::Gradients), own, own.count, layer, Occasion::Last));
  passes.add(
      {layer, CollectivePass{.from = own, .to = own, .stream = Stream::Gradient}, Occasion::Last});
  if (bucket.in_parts())
    passes.add({layer,
                CollectivePass{.op = Collective::AllGather,
                               .from = own,
                               .to = bucket.part(summed, layer, begin, end - begin),
                               .stream = Stream::Gradient,
                               .among_replicas = true},
                Occasion::Last});
}

/// Not called as soon as a sum is complete, because the kernels of the backward phase would wait.
void ParameterSchedule::widen_sums(const Bucket& bucket, PassSink& passes) const {
  if (!narrows_sums() || bucket.members == 1) return;
  const std::int64_t summed = bucket.summed();
  if (!shares(bucket, 2))
    passes.add(widen(bucket.part(Use::Role::NarrowGradients, all_layers, 0, summed),
                     bucket.part(Use::Role::Gradients, all_layers, 0, summed), summed, all_layers,
                     Occasion::Last));
  else if (network_.training.micro_batches == 1)
    passes.add(widen(bucket.of(Use::Role::NarrowGradientShare), bucket.of(Use::Role::GradientShare),
                     bucket.share, all_layers, Occasion::Last));
}

Pass ParameterSchedule::narrow(const Use& gradients, const Use& narrow, std::int64_t elements,
                               LayerIndex layer, Occasion occasion) const {
  Kernel kernel = flat_kernel(Convert, elements);
  kernel.type = execution_.precision.gradient_sums;
  return {layer, KernelPass{std::move(kernel), {gradients}, {narrow}}, occasion};
}

Pass ParameterSchedule::widen(const Use& narrow, const Use& gradients, std::int64_t elements,
                              LayerIndex layer, Occasion occasion) const {
  Kernel kernel = flat_kernel(Widen, elements);
  kernel.type = execution_.precision.gradient_sums;
  return {layer, KernelPass{std::move(kernel), {narrow}, {gradients}}, occasion};
}

/// Returns this rank's replica's part of `count` elements from `begin` on.
Use ParameterSchedule::replicas_part(const Bucket& bucket, Use::Role role, LayerIndex layer,
                                     std::int64_t begin, std::int64_t count) {
  SP_ASSERT(count % bucket.replicas == 0, "{} elements do not divide among {} replicas", count,
            bucket.replicas);
  const std::int64_t part = count / bucket.replicas;
  return bucket.part(role, layer, begin + bucket.replica * part, part);
}

/// Returns this rank's replica's part of the whole bucket.
Use ParameterSchedule::replicas_part(const Bucket& bucket, Use::Role role, LayerIndex layer) {
  return bucket.replicas == 1 ? bucket.of(role)
                              : replicas_part(bucket, role, layer, 0, bucket.elements);
}

/// The sums of later micro-batches are added to the share that holds the first micro-batch's sum.
void ParameterSchedule::reduce_to_shares(const Bucket& bucket, LayerIndex layer,
                                         PassSink& passes) const {
  const Use more{Use::Role::MoreGradients, layer, bucket.index};
  const Use part = replicas_part(bucket, Use::Role::Gradients, layer);
  const Region share = flat(bucket.share);
  const auto scatter = [&](const Use& from, const Use& to, Occasion occasion) {
    passes.add(
        {layer,
         CollectivePass{
             .op = Collective::ReduceScatter, .from = from, .to = to, .stream = Stream::Gradient},
         occasion});
  };
  const auto sum = [&](const Use& to, Occasion occasion) {
    if (bucket.members == 1)  // the part is the share
      return passes.add(
          {layer,
           KernelPass{copy_kernel(share, share, share, share, DataType::F32, false), {part}, {to}},
           occasion});
    if (!narrows_sums()) return scatter(part, to, occasion);
    const Use narrow_part = replicas_part(bucket, Use::Role::NarrowGradients, layer),
              narrow_share{Use::Role::NarrowGradientShare, layer, bucket.index};
    passes.add(narrow(part, narrow_part, bucket.elements / bucket.replicas, layer, occasion));
    scatter(narrow_part, narrow_share, occasion);
    if (network_.training.micro_batches > 1)
      passes.add(widen(narrow_share, to, bucket.share, layer, occasion));
  };
  sum(bucket.of(Use::Role::GradientShare), Occasion::First);
  sum(more, Occasion::AllButFirst);
  passes.add({layer,
              KernelPass{copy_kernel(share, share, share, share, DataType::F32, true),
                         {more},
                         {bucket.of(Use::Role::GradientShare)}},
              Occasion::AllButFirst});
}

/// At sharding stages 0 to 2, all members have all values again after the update. At stage 3,
/// values are gathered when layers read them.
void ParameterSchedule::update(const Bucket& bucket, PassSink& passes) const {
  const bool shared = shares(bucket, 1);
  const Use gradient = bucket.of(shared ? Use::Role::GradientShare : Use::Role::Gradients),
            value = bucket.of(shared ? Use::Role::ValueShare : Use::Role::Values);
  Kernel kernel = flat_kernel(update_kernel(network_.training.optimizer),
                              shared ? bucket.share : bucket.elements);
  std::vector<Use> reads{value, gradient}, writes{value};
  for (const Use::Role role : {Use::Role::FirstState, Use::Role::SecondState}) {
    if (states() < (role == Use::Role::FirstState ? 1 : 2)) continue;
    reads.push_back(bucket.of(role));
    writes.push_back(bucket.of(role));
  }
  kernel.as<OptimizerAttributes>().scaled = scales_loss();
  if (scales_loss()) reads.push_back({Use::Role::Overflows});
  if (shared) passes.declare(gradient);
  passes.add(update_of(bucket.group, std::move(kernel), std::move(reads), std::move(writes)));
  if (shared && !shares(bucket, 3)) gather(bucket, all_layers, Stream::Gradient, passes);
}

bool ParameterSchedule::has_trust(const BucketSlice& slice) const {
  const int group = network_.group_of(slice.layer, slice.what);
  return slice.what == ParameterRole::Weights &&
         (group < 0 || network_.training.groups[static_cast<std::size_t>(group)].trust);
}

void ParameterSchedule::update(const BucketSlice& slice, PassSink& passes) const {
  const bool trust = has_trust(slice);
  const Use value = slice.of(Use::Role::Parameter), velocity = slice.of(Use::Role::Velocity);
  Kernel kernel = flat_kernel(trust ? Lars : SgdMomentum, slice.region.elements());
  std::vector<Use> reads{value, slice.gradient(), velocity};
  if (trust) reads.push_back(slice.of(Use::Role::Norms));
  kernel.as<OptimizerAttributes>().scaled = scales_loss();
  if (scales_loss()) reads.push_back({Use::Role::Overflows});
  passes.add(update_of(network_.group_of(slice.layer, slice.what), std::move(kernel),
                       std::move(reads), {value, velocity}));
}

void ParameterSchedule::begin_norms(std::int64_t tensors, PassSink& passes) const {
  passes.add(run(all_layers, fill_kernel(2 * tensors, DataType::F64), {}, {{Use::Role::AllNorms}}));
}

void ParameterSchedule::take_norms(const BucketSlice& slice, PassSink& passes) const {
  passes.add(run(all_layers, flat_kernel(SquaredNorms, slice.region.elements()),
                 {slice.of(Use::Role::Parameter), slice.gradient()}, {slice.of(Use::Role::Norms)}));
}

void ParameterSchedule::sum_norms(PassSink& passes) const {
  passes.add({all_layers, CollectivePass{.from = {Use::Role::AllNorms},
                                         .to = {Use::Role::AllNorms},
                                         .dims = everyone,
                                         .stream = Stream::Gradient}});
}

void ParameterSchedule::sum_moments(int group, LayerIndex last, const DimList& dims,
                                    std::int64_t elements, PassSink& passes) const {
  const Use moments{Use::Role::AllMoments, last, group, 0, elements};
  passes.add({last, CollectivePass{
                        .from = moments, .to = moments, .dims = dims, .stream = Stream::Gradient}});
}

void ParameterSchedule::average(const Site& site, PassSink& passes) const {
  const LayerIndex layer = site.fusion.head;
  Kernel kernel = site.kernel(RunningAverage);
  kernel.attributes = RunningAverageAttributes{network_.momentum_of(layer), scales_loss()};
  const Use moments{Use::Role::Moments, layer}, running{Use::Role::Running, layer};
  std::vector<Use> reads{moments, running};
  if (scales_loss()) reads.push_back({Use::Role::Overflows});
  passes.add(run(layer, std::move(kernel), std::move(reads), {running}));
}

void ParameterSchedule::unscale(const Bucket& bucket, PassSink& passes) const {
  const bool shared = shares(bucket, 2);
  const Use gradient = bucket.of(shared ? Use::Role::GradientShare : Use::Role::Gradients),
            scale{Use::Role::LossScale}, overflows{Use::Role::Overflows};
  passes.add(run(all_layers, flat_kernel(Unscale, shared ? bucket.share : bucket.elements),
                 {gradient, scale, overflows}, {gradient, overflows}));
}

void ParameterSchedule::begin_overflows(PassSink& passes) const {
  passes.add(run(all_layers, fill_kernel(1, DataType::F64), {}, {{Use::Role::Overflows}}));
}

void ParameterSchedule::sum_overflows(PassSink& passes) const {
  passes.add({all_layers, CollectivePass{.from = {Use::Role::Overflows},
                                         .to = {Use::Role::Overflows},
                                         .dims = everyone,
                                         .stream = Stream::Gradient}});
}

void ParameterSchedule::adjust_loss_scale(PassSink& passes) const {
  passes.add(run(all_layers, flat_kernel(AdjustLossScale, 1),
                 {{Use::Role::LossScale}, {Use::Role::Overflows}}, {{Use::Role::LossScale}}));
}

}  // namespace stratplan
