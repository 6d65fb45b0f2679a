// Layers: the kernels and collectives of each kind, forward and backward. Backward follows from duals: what was reduce-scattered is
// gathered, what was gathered is reduced, what was redundant is left alone.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/local_kernel.hpp"
#include "model/partition/lowering.hpp"

namespace stratplan {

Lowering::Lowering(const Network& network, const Execution& execution, int rank, int ranks)
    : network_(network),
      execution_(execution),
      recomputation_(network, execution.recompute),
      states_(static_cast<std::size_t>(network.size())) {
  program.rank = rank;
  program.ranks = ranks;
}

void Lowering::place(LayerIndex index, const Decomposition& decomposition) {
  SP_ASSERT(decomposition.grid.ranks() == program.ranks, "layer {}: {} on {} ranks",
            layer(index).name, decomposition.text(), program.ranks);
  state(index).placed = true;
  state(index).decomposition = decomposition;
  state(index).distributions = distribute(layer(index), decomposition);
  fuse({index});
}

void Lowering::fuse(const Fusion& fusion) {
  for (const LayerIndex index : fusion.layers()) state(index).head = fusion.head;
  state(fusion.head).fusion = fusion;
}

// ---------------------------------------------------------------- appending

BufferId Lowering::add_buffer(std::string name, TensorClass tensor_class, const Region& region,
                              LayerIndex index, std::optional<DataType> type) {
  const Precision& precision = execution_.precision;
  const bool of_activations = tensor_class == TensorClass::Activation ||
                              tensor_class == TensorClass::ActivationGradient ||
                              tensor_class == TensorClass::Message;
  const DataType usual = of_activations                           ? precision.activations
                         : tensor_class == TensorClass::Parameter ? precision.weights
                                                                  : precision.gradients;
  program.buffers.push_back({.name = std::move(name),
                             .tensor_class = tensor_class,
                             .type = type.value_or(usual),
                             .region = region,
                             .layer = index});
  return static_cast<BufferId>(program.buffers.size()) - 1;
}

BufferId Lowering::add_flat(std::string name, TensorClass tensor_class, std::int64_t elements,
                            LayerIndex index, std::optional<DataType> type) {
  Shape shape;
  shape[Axis::C] = elements;
  return add_buffer(std::move(name), tensor_class, whole(shape), index, type);
}

BufferId Lowering::add_slice(BufferId parent, std::int64_t element, std::string name,
                             const Region& region, LayerIndex index) {
  const Buffer& outer = program.buffer(parent);
  const BufferId id = add_buffer(std::move(name), outer.tensor_class, region, index, outer.type);
  program.buffer(id).inside = parent;
  program.buffer(id).offset = {element * size_of(program.buffer(id).type)};
  program.buffer(id).persistent = program.buffer(parent).persistent;
  return id;
}

Step& Lowering::add_step(LayerIndex index, Track track, std::vector<BufferId> reads,
                         std::vector<BufferId> writes) {
  program.steps.push_back({.layer = index,
                           .producer = producer_,
                           .phase = phase_,
                           .track = track,
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .body = {}});
  return program.steps.back();
}

void Lowering::add_kernel(LayerIndex index, Kernel kernel, std::vector<BufferId> reads,
                          std::vector<BufferId> writes) {
  Region region = program.buffer(writes.front()).region;
  const Shape global = index >= 0 ? layer(index).output : region.shape();
  if (works_on_activations(kernel.kind)) kernel.type = execution_.precision.activations;
  if (kernel.kind == KernelKind::Dropout)
    region = in_whole_batch(region);  // random numbers are counted by element of the whole batch
  add_step(index, Track::Compute, std::move(reads), std::move(writes)).body =
      ComputeStep{std::move(kernel), region, global};
}

void Lowering::add_collective(LayerIndex index, Track track, CollectiveStep collective,
                              BufferId read, BufferId written) {
  if (collective.group.size() > 1 && collective.count > 0)
    add_step(index, track, {read}, {written}).body = std::move(collective);
}

void Lowering::add_exchange(LayerIndex producer, LayerIndex consumer, int message_tag,
                            std::vector<Message> sends, std::vector<Message> receives) {
  std::vector<BufferId> reads, writes;
  for (const Message& message : sends) reads.push_back(message.buffer);
  for (const Message& message : receives) writes.push_back(message.buffer);
  Step& step = add_step(consumer, Track::Halo, std::move(reads), std::move(writes));
  step.producer = producer;
  step.body = ExchangeStep{std::move(sends), std::move(receives), message_tag};
}

void Lowering::copy(LayerIndex index, BufferId from, BufferId to, const Region& region,
                    bool accumulate) {
  copy(index, from, region, to, region, accumulate);
}

void Lowering::copy(LayerIndex index, BufferId from, const Region& there, BufferId to,
                    const Region& here, bool accumulate) {
  const Buffer &source = program.buffer(from), &destination = program.buffer(to);
  SP_ASSERT(source.region.contains(there) && destination.region.contains(here), "{} -> {}: {}",
            source.name, destination.name, to_string(here));
  SP_ASSERT(there.shape() == here.shape(), "{} -> {}", to_string(there), to_string(here));
  Kernel kernel;
  kernel.kind = KernelKind::CopyRegion;
  kernel.type = source.type;
  kernel.accumulate = accumulate;
  kernel.x = source.region.shape();
  kernel.y = destination.region.shape();
  kernel.region = here.shape();
  for (const Axis axis : all_axes) {
    kernel.from[static_cast<std::size_t>(axis)] = there[axis].begin - source.region[axis].begin;
    kernel.to[static_cast<std::size_t>(axis)] = here[axis].begin - destination.region[axis].begin;
  }
  add_kernel(index, kernel, {from}, {to});
}

void Lowering::convert(LayerIndex index, BufferId from, BufferId to) {
  Kernel kernel;
  kernel.kind = KernelKind::Convert;
  kernel.type = program.buffer(to).type;
  kernel.x = kernel.y = program.buffer(to).region.shape();
  add_kernel(index, kernel, {from}, {to});
}

void Lowering::load(LayerIndex index, LoadStep::What what, BufferId into, const Region& region,
                    const Shape& global, std::int64_t classes) {
  LoadStep load{what, in_whole_batch(region), global, classes};
  load.global[Axis::N] *= network_.training.micro_batches;
  add_step(index, Track::Compute, {}, {into}).body = load;
}

Region Lowering::in_whole_batch(Region region) const {
  const std::int64_t before = micro_batch_ * network_.micro_batch();
  region[Axis::N] = {region[Axis::N].begin + before, region[Axis::N].end + before};
  return region;
}

void Lowering::begin_micro_batch(std::int64_t micro_batch) {
  micro_batch_ = micro_batch;
  phase_ = Phase::Forward;
  for (const auto& at : states_) {
    if (!at) continue;
    at->contributions.clear();
    at->made_again = false;
    at->brought_again.clear();
  }
  begin_buckets();
}

void Lowering::all_reduce_over(LayerIndex index, const DimList& dims, BufferId buffer) {
  const Buffer& data = program.buffer(buffer);
  CollectiveStep collective{Collective::AllReduce,
                            state(index).decomposition.grid.group(program.rank, dims),
                            data.type,
                            0,
                            data.region.elements(),
                            {}};
  add_collective(index, Track::Halo, std::move(collective), buffer, buffer);
}

Kernel Lowering::kernel_of(LayerIndex index, KernelKind kind) const {
  return local_kernel(network_, index, state(index).distributions, program.rank, kind);
}

// ---------------------------------------------------------------- forward

void Lowering::layer_forward(LayerIndex layer_done) {
  const LayerIndex index = state(layer_done).head;
  State& at = state(index);
  if (at.fusion.last() != layer_done) return;
  const LayerKind kind = layer(index).kind;
  if (is_contraction(kind)) return forward_contraction(index);
  if (infers_ && kind == LayerKind::BatchNorm) return infer_batch_norm(index);
  if (has_statistics(kind)) return forward_normalization(index);
  if (infers_ && kind == LayerKind::Dropout) {
    at.home = at.needed.front();
    return;
  }
  if (is_loss(kind)) return forward_loss(index);
  if (places_inputs(kind)) return forward_placement(index);

  at.home = add_buffer(layer(index).name + ".y", TensorClass::Activation,
                       at.distributions.home.owned(program.rank), index);
  std::vector<BufferId> writes{at.home};
  std::vector<BufferId> reads = at.needed;
  const auto forward = [&](KernelKind kernel_kind) {
    Kernel kernel = kernel_of(index, kernel_kind);
    kernel.inputs = static_cast<int>(at.needed.size());
    add_kernel(index, kernel, reads, writes);
  };
  switch (kind) {
    case LayerKind::MaxPool:
      at.index = add_buffer(layer(index).name + ".index", TensorClass::Activation,
                            at.distributions.home.owned(program.rank), index, DataType::I32);
      writes.push_back(at.index);
      return forward(KernelKind::MaxPoolForward);
    case LayerKind::AveragePool: return forward(KernelKind::AveragePoolForward);
    case LayerKind::Upsample: return forward(KernelKind::UpsampleForward);
    case LayerKind::GlobalAveragePool:
      forward(KernelKind::SpatialMeanForward);
      return all_reduce_over(index, at.distributions.raw.dims_with(Role::Partial), at.home);
    case LayerKind::Pointwise: return forward(KernelKind::PointwiseForward);
    case LayerKind::Add: return forward(KernelKind::Add);
    case LayerKind::Dropout: return forward(KernelKind::Dropout);
    case LayerKind::Softmax: return forward(KernelKind::SoftmaxForward);
    case LayerKind::LocalResponseNorm: return forward(KernelKind::LocalResponseForward);
    case LayerKind::PReLU:
      reads.push_back(value_of(index, ParameterSlice::What::Slope));
      return forward(KernelKind::PreluForward);
    default: SP_ASSERT(false, "layer {} of kind {}", layer(index).name, name_of(kind));
  }
}

/// A transposed convolution is the gradient of the convolution that leads from its output to its input. What is fused with it is done by the last of its kernels.
void Lowering::forward_contraction(LayerIndex index) {
  State& at = state(index);
  const bool transposed = layer(index).kind == LayerKind::TransposedConvolution;
  const bool partial = !at.distributions.raw.dims_with(Role::Partial).empty();
  const bool scatters = partial && at.decomposition.landing == Landing::ReduceScatter;
  const BufferId raw = scatters
                           ? add_buffer(layer(index).name + ".partial", TensorClass::Activation,
                                        at.distributions.raw.owned(program.rank), index)
                           : add_output(index);
  Kernel kernel = kernel_of(
      index, transposed ? KernelKind::ConvolutionBackwardData : KernelKind::ConvolutionForward);
  kernel.bias = layer(index).bias && !partial && !transposed;
  std::vector<BufferId> reads{at.needed.front(), weights_of(index)};
  if (kernel.bias) reads.push_back(value_of(index, ParameterSlice::What::Bias));
  const bool bias_follows = layer(index).bias && !kernel.bias;
  if (!bias_follows) activate(at.fusion, kernel);
  contract(index, kernel, reads, raw);
  if (partial) land(index, raw);
  if (bias_follows) {
    const BufferId y = state(at.fusion.last()).home;
    Kernel bias;
    bias.kind = KernelKind::BiasAdd;
    bias.x = bias.y = program.buffer(y).region.shape();
    activate(at.fusion, bias);
    add_kernel(index, bias, {y, value_of(index, ParameterSlice::What::Bias)}, {y});
  }
}

/// Sums the partial outputs of the C ranks: all of it on each (all-reduce), or each its own channels (reduce-scatter).
void Lowering::land(LayerIndex index, BufferId raw) {
  State& at = state(index);
  if (at.decomposition.landing == Landing::AllReduce) {
    return all_reduce_over(index, {Dim::C}, raw);
  }
  CollectiveStep collective{Collective::ReduceScatter,
                            at.decomposition.grid.group(program.rank, {Dim::C}),
                            program.buffer(raw).type,
                            0,
                            program.buffer(raw).region.elements(),
                            {}};
  const BufferId packed =
      add_flat(layer(index).name + ".packed", TensorClass::Message, collective.count, index);
  std::int64_t element = 0;
  for (const int member : collective.group) {
    const Region region = at.distributions.home.owned(member);
    copy(index, raw, add_slice(packed, element, layer(index).name + ".packed", region, index),
         region, false);
    collective.counts.push_back(region.elements());
    element += region.elements();
  }
  add_collective(index, Track::Halo, std::move(collective), packed, add_output(index));
}

/// The sets that overlap this rank's samples, and the ranks that hold parts of them.
Lowering::SetGroup Lowering::statistics_sets(LayerIndex index) const {
  const ProcessGrid& grid = state(index).decomposition.grid;
  const StatisticsGroup blocks =
      statistics_group(network_, index, state(index).distributions, program.rank);
  if (blocks.alone) return {blocks.sets, {program.rank}};
  SetGroup group{blocks.sets, {}};
  std::array<int, dim_count> at{};
  for (const Dim dim : all_dims) at[static_cast<std::size_t>(dim)] = grid.index(dim, program.rank);
  for (int n = blocks.first_block; n <= blocks.last_block; ++n) {
    at[static_cast<std::size_t>(Dim::N)] = n;
    std::ranges::copy(grid.group(grid.rank_at(at), {Dim::D, Dim::H, Dim::W}),
                      std::back_inserter(group.ranks));
  }
  std::ranges::sort(group.ranks);
  return group;
}

/// Batch normalization; instance and group normalization are the same in sets of one sample, which no rank shares but with those that hold other positions.
/// Made again in the backward phase it has its sums already.
void Lowering::forward_normalization(LayerIndex index) {
  const SetGroup group = statistics_sets(index);
  Kernel kernel = kernel_of(index, KernelKind::BatchNormStatistics);
  kernel.sets = group.sets;
  if (phase_ == Phase::Forward) sum_statistics(index, kernel, group);
  kernel.kind = KernelKind::BatchNormForward;
  using What = ParameterSlice::What;
  const State& at = state(index);
  finish_normalization(
      index, kernel,
      {at.needed.front(), at.sums, value_of(index, What::Scale), value_of(index, What::Shift)});
}

void Lowering::sum_statistics(LayerIndex index, const Kernel& kernel, const SetGroup& group) {
  State& at = state(index);
  at.sums = add_flat(layer(index).name + ".sums", TensorClass::Statistics,
                     group.sets.sets * 2 * kernel.x[Axis::C], index, DataType::F64);
  add_kernel(index, kernel, {at.needed.front()}, {at.sums});
  CollectiveStep collective{Collective::AllReduce,
                            group.ranks,
                            DataType::F64,
                            0,
                            program.buffer(at.sums).region.elements(),
                            {}};
  add_collective(index, Track::Halo, std::move(collective), at.sums, at.sums);
  if (at.moments >= 0) contribute_moments(index, group.sets);
}

// ---------------------------------------------------------------- backward

/// The sum of what the consumers contributed.
BufferId Lowering::gradient_of_output(LayerIndex index) {
  State& at = state(index);
  SP_ASSERT(!at.contributions.empty(), "nobody reads layer {}", layer(index).name);
  if (at.contributions.size() == 1) return at.contributions.front();
  const BufferId sum = add_buffer("d " + layer(index).name + ".y", TensorClass::ActivationGradient,
                                  at.distributions.home.owned(program.rank), index);
  Kernel kernel;
  kernel.kind = KernelKind::Add;
  kernel.inputs = static_cast<int>(at.contributions.size());
  kernel.x = kernel.y = program.buffer(sum).region.shape();
  add_kernel(index, kernel, at.contributions, {sum});
  return sum;
}

BufferId Lowering::input_gradient(LayerIndex index, std::size_t input) {
  const Region region = state(index).distributions.inputs[input].region(program.rank);
  return add_buffer(fmt::format("d {}.x", layer(index).name), TensorClass::ActivationGradient,
                    region, index);
}

void Lowering::pass_back(LayerIndex index, std::size_t input, BufferId gradient) {
  const LayerIndex producer = layer(index).inputs[input];
  if (state(producer).placed)
    finish_edge_backward(begin_edge_backward(producer, index, input, gradient));
}

void Lowering::layer_backward(LayerIndex index) {
  State& at = state(index);
  const LayerKind kind = layer(index).kind;
  phase_ = Phase::Backward;
  if (at.head != index) return;
  if (is_loss(kind))
    return reads_input_layer(index, 0) ? void() : pass_back(index, 0, at.loss_gradient);
  make_ready_for_backward(index);
  const BufferId dy = gradient_of_output(at.fusion.last());
  if (is_contraction(kind)) return backward_contraction(index, dy);
  if (has_statistics(kind)) return backward_normalization(index, dy);
  if (kind == LayerKind::PReLU) return backward_prelu(index, dy);
  if (places_inputs(kind)) return backward_placement(index, dy);
  if (kind == LayerKind::Add) {
    for (std::size_t input = 0; input < layer(index).inputs.size(); ++input)
      if (!reads_input_layer(index, input)) pass_back(index, input, dy);
    return;
  }
  switch (kind) {
    case LayerKind::MaxPool:
      return backward_simple(index, kernel_of(index, KernelKind::MaxPoolBackward), {dy, at.index});
    case LayerKind::AveragePool:
      return backward_simple(index, kernel_of(index, KernelKind::AveragePoolBackward), {dy});
    case LayerKind::Upsample:
      return backward_simple(index, kernel_of(index, KernelKind::UpsampleBackward), {dy});
    case LayerKind::GlobalAveragePool:
      return backward_simple(index, kernel_of(index, KernelKind::SpatialMeanBackward), {dy});
    case LayerKind::Pointwise:
      return backward_simple(
          index, kernel_of(index, KernelKind::PointwiseBackward),
          {reads_input(layer(index).pointwise.function) ? at.needed.front() : at.home, dy});
    case LayerKind::Dropout:
      return backward_simple(index, kernel_of(index, KernelKind::Dropout), {dy});
    case LayerKind::Softmax:
      return backward_simple(index, kernel_of(index, KernelKind::SoftmaxBackward), {at.home, dy});
    case LayerKind::LocalResponseNorm:
      return backward_simple(index, kernel_of(index, KernelKind::LocalResponseBackward),
                             {at.needed.front(), dy});
    default: SP_ASSERT(false, "layer {} of kind {}", layer(index).name, name_of(kind));
  }
}

void Lowering::backward_simple(LayerIndex index, Kernel kernel, std::vector<BufferId> reads) {
  if (reads_input_layer(index, 0)) return;
  const BufferId dx = input_gradient(index, 0);
  add_kernel(index, std::move(kernel), std::move(reads), {dx});
  pass_back(index, 0, dx);
}

/// As in a contraction, what the gradient of x owes to others goes before the gradient of the slopes.
void Lowering::backward_prelu(LayerIndex index, BufferId dy) {
  const ParameterSlice& slope = parameter(index, ParameterSlice::What::Slope);
  const BufferId x = state(index).needed.front();
  PendingEdge edge;
  if (!reads_input_layer(index, 0)) {
    const BufferId dx = input_gradient(index, 0);
    add_kernel(index, kernel_of(index, KernelKind::PreluBackward),
               {x, dy, value_of(index, ParameterSlice::What::Slope)}, {dx});
    const LayerIndex producer = layer(index).inputs.front();
    if (state(producer).placed) edge = begin_edge_backward(producer, index, 0, dx);
  }
  add_kernel(index, kernel_of(index, KernelKind::PreluGradient), {x, dy}, {slope.gradient});
  if (edge.producer >= 0) finish_edge_backward(edge);
  gradient_complete(slope);
}

/// The gradient of the raw output from that of the landed one: the dual of reduce-scatter is all-gather; after an all-reduce it is already complete.
BufferId Lowering::gather_landed(LayerIndex index, BufferId dy) {
  const State& at = state(index);
  if (at.distributions.raw.dims_with(Role::Partial).empty() ||
      at.decomposition.landing == Landing::AllReduce)
    return dy;
  const Region raw = at.distributions.raw.owned(program.rank);
  CollectiveStep collective{
      Collective::AllGather,   at.decomposition.grid.group(program.rank, {Dim::C}),
      program.buffer(dy).type, 0,
      raw.elements(),          {}};
  const BufferId gathered = add_flat("d " + layer(index).name + ".gathered", TensorClass::Message,
                                     collective.count, index);
  const BufferId unpacked = add_buffer("d " + layer(index).name + ".partial",
                                       TensorClass::ActivationGradient, raw, index);
  const std::vector<int> group = collective.group;
  for (const int member : group)
    collective.counts.push_back(at.distributions.home.owned(member).elements());
  add_collective(index, Track::Halo, std::move(collective), dy, gathered);
  std::int64_t element = 0;
  for (const int member : group) {
    const Region region = at.distributions.home.owned(member);
    copy(index, add_slice(gathered, element, "d " + layer(index).name + ".gathered", region, index),
         unpacked, region, false);
    element += region.elements();
  }
  return unpacked;
}

/// Backward-data first: its transfers are under way while backward-filter runs.
void Lowering::backward_contraction(LayerIndex index, BufferId dy) {
  using What = ParameterSlice::What;
  const State& at = state(index);
  const bool transposed = layer(index).kind == LayerKind::TransposedConvolution;
  const BufferId raw = gather_landed(index, backward_bias(index, dy));
  const LayerIndex producer = layer(index).inputs.front();
  PendingEdge edge;
  if (!reads_input_layer(index, 0)) {
    const BufferId dx = input_gradient(index, 0);
    const KernelKind pass =
        transposed ? KernelKind::ConvolutionForward : KernelKind::ConvolutionBackwardData;
    add_kernel(index, kernel_of(index, pass), {raw, weights_of(index)}, {dx});
    if (state(producer).placed) edge = begin_edge_backward(producer, index, 0, dx);
  }
  std::vector<BufferId> factors{at.needed.front(), raw};
  if (transposed) std::swap(factors[0], factors[1]);
  add_kernel(index, kernel_of(index, KernelKind::ConvolutionBackwardFilter), std::move(factors),
             {parameter(index, What::Weights).gradient});
  if (edge.producer >= 0) finish_edge_backward(edge);
  for (const std::size_t p : at.parameters) gradient_complete(program.parameters[p]);
}

}  // namespace stratplan
