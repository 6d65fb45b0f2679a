// Turns passes into ops. Tensors get buffers, and the dimensions of collectives become ranks of the
// job. Also appends the kernels, copies, loads and transfers of all other files of Lowering.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/partition/layers/layer_family.hpp"
#include "model/partition/lowering/lowering.hpp"

namespace stratplan {

Lowering::Lowering(const Network& network, const Execution& execution, int rank, int ranks,
                   bool infers)
    : network_(network),
      execution_(execution),
      recomputation_(network, execution.recompute),
      states_(static_cast<std::size_t>(network.size())),
      infers_(infers),
      schedule_(network, execution, infers) {
  program.rank = rank;
  program.ranks = ranks;
}

void Lowering::place(LayerIndex index, const Decomposition& decomposition) {
  const int ranks = decomposition.grid.ranks(), listed = decomposition.ranks.count();
  SP_ASSERT(listed == 0 || listed == ranks,
            "layer {}: decomposition {} lists a number of ranks that differs from its grid's",
            layer(index).name, decomposition.text());
  SP_ASSERT(decomposition.ranks.end(ranks) <= program.ranks,
            "layer {}: decomposition {} needs ranks beyond the {} ranks of the job",
            layer(index).name, decomposition.text(), program.ranks);
  const bool lies_elsewhere = placed_on_ != std::pair(decomposition.ranks, ranks);
  for (int rank = 0; lies_elsewhere && rank < ranks; ++rank)
    participants_.insert(decomposition.ranks.of_job(rank));
  placed_on_ = {decomposition.ranks, ranks};
  state(index).placed = true;
  state(index).rank = decomposition.ranks.of_grid(program.rank, ranks);
  state(index).decomposition = decomposition;
  state(index).distributions = distribute(layer(index), decomposition);
  fuse({index});
  if (is_loss(layer(index).kind)) place_loss(index);
}

namespace {

/// The job's ranks on which a decomposition lies.
std::set<int> job_ranks(const Decomposition& decomposition) {
  std::set<int> ranks;
  for (int rank = 0; rank < decomposition.grid.ranks(); ++rank)
    ranks.insert(decomposition.ranks.of_job(rank));
  return ranks;
}

}  // namespace

/// Losses are placed in any order, and listed in the network's order.
void Lowering::place_loss(LayerIndex index) {
  std::vector<LossValue>& losses = program.losses;
  const std::set<int> ranks = job_ranks(state(index).decomposition);
  program.losses_apart =
      program.losses_apart ||
      (!losses.empty() && job_ranks(state(losses.front().layer).decomposition) != ranks);
  losses.insert(std::ranges::lower_bound(losses, index, {}, &LossValue::layer),
                {index, layer(index).loss_weight, -1, *ranks.begin()});
  loss_is_placed_ = loss_is_placed_ || index == network_.last_loss();
}

/// Returns the buffer of a loss. Makes the buffer if there is none yet.
BufferId Lowering::loss_buffer(LayerIndex index) {
  LossValue& loss = *std::ranges::find(program.losses, index, &LossValue::layer);
  if (loss.value < 0)
    loss.value = add_flat("loss", TensorClass::Statistics, 1, index, DataType::F64);
  return loss.value;
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

Op& Lowering::add_op(LayerIndex index, Stream stream, std::vector<BufferId> reads,
                     std::vector<BufferId> writes) {
  program.ops.push_back({.layer = index,
                         .producer = producer_,
                         .phase = phase_,
                         .stream = stream,
                         .reads = std::move(reads),
                         .writes = std::move(writes),
                         .body = {}});
  return program.ops.back();
}

void Lowering::add_kernel(LayerIndex index, Kernel kernel, std::vector<BufferId> reads,
                          std::vector<BufferId> writes) {
  Region region = program.buffer(writes.front()).region;
  const Shape global = index >= 0 ? layer(index).output : region.shape();
  if (works_on_activations(kernel.kind)) kernel.type = execution_.precision.activations;
  if (kernel.kind == KernelKind::Dropout)
    region = in_whole_batch(region);  // random numbers are keyed by element of the whole batch
  add_op(index, Stream::Compute, std::move(reads), std::move(writes)).body =
      ComputeOp{std::move(kernel), region, global};
}

void Lowering::add_collective(LayerIndex index, Stream stream, CollectiveOp collective,
                              BufferId read, BufferId written) {
  if (collective.group.size() > 1 && collective.count > 0)
    add_op(index, stream, {read}, {written}).body = std::move(collective);
}

void Lowering::add_exchange(LayerIndex producer, LayerIndex consumer, int message_tag,
                            std::vector<Message> sends, std::vector<Message> receives) {
  std::vector<BufferId> reads, writes;
  for (const Message& message : sends) reads.push_back(message.buffer);
  for (const Message& message : receives) writes.push_back(message.buffer);
  Op& op = add_op(consumer, Stream::Halo, std::move(reads), std::move(writes));
  op.producer = producer;
  op.body = ExchangeOp{std::move(sends), std::move(receives), message_tag};
}

void Lowering::copy(LayerIndex index, BufferId from, BufferId to, const Region& region,
                    bool accumulate) {
  copy(index, from, region, to, region, accumulate);
}

void Lowering::copy(LayerIndex index, BufferId from, const Region& there, BufferId to,
                    const Region& here, bool accumulate) {
  const Buffer &source = program.buffer(from), &destination = program.buffer(to);
  add_kernel(index,
             copy_kernel(source.region, there, destination.region, here, source.type, accumulate),
             {from}, {to});
}

namespace {

/// Returns the place of a load's layer among the input layers, or among the losses.
int place_of_data(const Network& network, const LoadPass& pass) {
  const bool samples = pass.what == LoadOp::What::Samples;
  const LayerIndex layer =
      samples ? network.layer(pass.into.layer).inputs[static_cast<std::size_t>(pass.into.which)]
              : pass.into.layer;
  int place = 0;
  for (LayerIndex before = 0; before < layer; ++before)
    place += samples ? network.layer(before).is_data() : is_loss(network.layer(before).kind);
  return place;
}

}  // namespace

void Lowering::load(LayerIndex index, const LoadPass& pass) {
  LoadOp load{pass.what,    in_whole_batch(pass.region),   pass.global,
              pass.classes, place_of_data(network_, pass), pass.ignored};
  load.global[Axis::N] *= network_.training.micro_batches;
  add_op(index, Stream::Compute, {}, {buffer_of(pass.into)}).body = load;
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
    at->sent.clear();
    at->recomputed = false;
    at->brought_again.clear();
    at->other_gradients.clear();
  }
  begin_buckets();
}

// ---------------------------------------------------------------- passes

Site Lowering::site_of(LayerIndex head) const {
  const State& at = state(head);
  Site site{.network = network_,
            .execution = execution_,
            .fusion = at.fusion,
            .decomposition = at.decomposition,
            .rank = at.rank,
            .infers = infers_};
  std::size_t i = 0;
  for (const LayerIndex index : at.fusion.layers())
    site.distributions[i++] = &state(index).distributions;
  return site;
}

bool Lowering::happens(Occasion occasion) const {
  switch (occasion) {
    case Occasion::Each: return true;
    case Occasion::First: return micro_batch_ == 0;
    case Occasion::AllButFirst: return micro_batch_ > 0;
    case Occasion::Between: return micro_batch_ > 0 && !last_micro_batch();
    case Occasion::Last: return last_micro_batch();
  }
  return true;
}

void Lowering::layer_forward(LayerIndex layer_done) {
  const LayerIndex head = state(layer_done).head;
  if (state(head).fusion.last() != layer_done) return;
  state(layer_done).home = -1;
  if (state(head).rank < 0) return;
  family_of(layer(head).kind).forward(site_of(head), *this);
}

void Lowering::layer_backward(LayerIndex index) {
  State& at = state(index);
  phase_ = Phase::Backward;
  if (at.head != index || !network_.needs_gradient(index)) return;
  make_ready_for_backward(index);
  for (const LayerIndex each : at.fusion.layers())
    state(each).input_gradients.assign(layer(each).inputs.size(), -1);
  if (at.rank < 0) return edges_backward_elsewhere(index);
  if (!is_loss(layer(index).kind))
    state(at.fusion.last()).output_gradient = gradient_of_output(at.fusion.last());
  family_of(layer(index).kind).backward(site_of(index), *this);
}

namespace {

/// Passes on only the edge passes, for a layer that does not lie on this rank. The edge passes keep
/// the order that they have on the layer's own ranks.
class EdgesAlone : public PassSink {
 public:
  explicit EdgesAlone(PassSink& edges) : edges_(edges) {}
  void declare(const Use&, const TensorSpec&) override {}
  void add(const Pass& pass) override {
    if (std::holds_alternative<EdgePass>(pass.body)) edges_.add(pass);
  }

 private:
  PassSink& edges_;
};

}  // namespace

void Lowering::edges_backward_elsewhere(LayerIndex head) {
  Site site = site_of(head);
  site.rank = 0;  // every rank of the layer has the same edges
  EdgesAlone edges(*this);
  family_of(layer(head).kind).backward(site, edges);
}

void Lowering::declare(const Use& tensor, const TensorSpec& spec) {
  if (!happens(spec.occasion) || (spec.kept && phase_ == Phase::Backward)) return;
  if (tensor.role != Use::Role::Tensor && tensor.role != Use::Role::Loaded)
    return void(buffer_of(tensor));
  const bool gradient =
      phase_ == Phase::Backward || spec.tensor_class == TensorClass::ActivationGradient;
  state(tensor.layer).tensors[tensor] =
      add_buffer(fmt::format("{}{}{}{}", gradient ? "d " : "", layer(tensor.layer).name,
                             *spec.part ? "." : "", spec.part),
                 spec.tensor_class, spec.region, tensor.layer, spec.type);
}

void Lowering::add(const Pass& pass) {
  if (!happens(pass.occasion) || (pass.kept && phase_ == Phase::Backward)) return;
  std::visit([&](const auto& body) { lower_pass(pass.layer, body); }, pass.body);
}

/// Returns the buffer of a tensor that belongs to a layer but not to a parameter.
BufferId Lowering::layer_buffer(const Use& use) {
  using enum Use::Role;
  State& at = state(use.layer);
  const auto which = static_cast<std::size_t>(use.which);
  switch (use.role) {
    case Input: return at.needed[which];
    case InputGradient:
      if (at.input_gradients[which] < 0)
        at.input_gradients[which] = add_buffer(
            fmt::format("d {}.x", layer(use.layer).name), TensorClass::ActivationGradient,
            at.distributions.inputs[which].region(at.rank), use.layer);
      return at.input_gradients[which];
    case Output:
      if (at.home < 0)
        at.home = add_buffer(layer(use.layer).name + ".y", TensorClass::Activation,
                             at.distributions.home.owned(at.rank), use.layer);
      return at.home;
    case OutputGradient: return at.output_gradient;
    case Running:
      SP_ASSERT(at.running >= 0, "layer {} needs running statistics, but its network keeps none",
                layer(use.layer).name);
      return at.running;
    case Moments: return at.moments;
    case Loaded:
    case Tensor: return at.tensors.at(use);
    default: break;
  }
  SP_ASSERT(false, "role {} does not belong to a tensor of a layer", static_cast<int>(use.role));
  return -1;
}

BufferId Lowering::buffer_of(const Use& use) {
  using enum Use::Role;
  switch (use.role) {
    case Input:
    case InputGradient:
    case Output:
    case OutputGradient:
    case Running:
    case Moments:
    case Loaded:
    case Tensor: return layer_buffer(use);
    case Loss: return loss_buffer(use.layer);
    case LossScale: return program.loss_scale;
    case Overflows: return overflows_;
    case AllNorms: return all_norms_;
    case AllMoments: return running_groups_[static_cast<std::size_t>(use.which)].moments;
    default: return parameter_buffer(use);
  }
}

std::vector<BufferId> Lowering::buffers_of(const std::vector<Use>& uses) {
  std::vector<BufferId> buffers;
  for (const Use& use : uses) buffers.push_back(buffer_of(use));
  return buffers;
}

void Lowering::lower_pass(LayerIndex index, const KernelPass& pass) {
  if (has_no_use(pass)) return;
  std::vector<BufferId> writes = buffers_of(pass.writes), reads = buffers_of(pass.reads);
  if (pass.may_split && !state(index).split.interior.empty())
    return contract(index, pass.kernel, reads, writes.front());
  add_kernel(index, pass.kernel, std::move(reads), std::move(writes));
  std::get<ComputeOp>(program.ops.back().body).parameter_group = pass.parameter_group;
}

void Lowering::lower_pass(LayerIndex index, const LoadPass& pass) { load(index, pass); }

void Lowering::lower_pass(LayerIndex, const EdgePass& pass) {
  State& at = state(pass.layer);
  const LayerIndex producer = layer(pass.layer).inputs[pass.input];
  if (!state(producer).placed) return;
  at.sent.resize(at.needed.size());
  PendingEdge& edge = at.sent[pass.input];
  if (pass.what == EdgePass::What::Send)
    edge = begin_edge_backward(producer, pass.layer, pass.input,
                               at.rank < 0 ? -1 : buffer_of(pass.gradient));
  else
    finish_edge_backward(edge);
}

void Lowering::lower_pass(LayerIndex index, const GradientPass& pass) {
  add_gradient(index, static_cast<ParameterRole>(pass.gradient.which));
}

void Lowering::lower_pass(LayerIndex, const AliasPass& pass) {
  state(pass.output.layer).home = buffer_of(pass.input);
}

std::vector<int> Lowering::ranks_of(LayerIndex index, const CollectivePass& pass) const {
  const auto which = static_cast<std::size_t>(pass.from.which);
  if (is_of_bucket(pass.from)) {
    const Holders& holders = buckets_[which].holders;
    return pass.among_replicas ? holders.replicas : holders.members;
  }
  if (pass.from.role == Use::Role::AllMoments) return running_groups_[which].ranks;
  if (index < 0) return {participants_.begin(), participants_.end()};
  const auto& [grid, output_layout, of_job] = state(index).decomposition;
  const int rank = state(index).rank;
  if (!pass.blocks) return of_job.of_job(grid.group(rank, pass.dims));
  DimList others;
  for (const Dim dim : pass.dims)
    if (dim != Dim::N) others.push_back(dim);
  std::array<int, dim_count> at{};
  for (const Dim dim : all_dims) at[static_cast<std::size_t>(dim)] = grid.index(dim, rank);
  std::vector<int> ranks;
  for (int n = pass.blocks->first; n <= pass.blocks->second; ++n) {
    at[static_cast<std::size_t>(Dim::N)] = n;
    std::ranges::copy(grid.group(grid.rank_at(at), others), std::back_inserter(ranks));
  }
  std::ranges::sort(ranks);
  return of_job.of_job(std::move(ranks));
}

void Lowering::lower_pass(LayerIndex index, const CollectivePass& pass) {
  const bool gathers = pass.op == Collective::AllGather,
             scatters = pass.op == Collective::ReduceScatter;
  Use longer = gathers && !pass.parts ? pass.to : pass.from;
  const bool reduces = !gathers && !scatters;
  if (reduces) longer.count = -1;  // selects a run of the whole tensor; others have it as a buffer
  const BufferId all = buffer_of(longer);
  CollectiveOp collective{.op = pass.op,
                          .group = ranks_of(index, pass),
                          .type = program.buffer(all).type,
                          .begin = reduces ? pass.from.begin : 0,
                          .count = reduces && pass.from.count >= 0
                                       ? pass.from.count
                                       : program.buffer(all).region.elements(),
                          .counts = {}};
  if (pass.parts)
    return scatters ? reduce_scatter(index, pass, std::move(collective))
                    : all_gather(index, pass, std::move(collective));
  if (gathers || scatters)  // the members of a bucket have equal parts
    collective.counts.assign(collective.group.size(),
                             collective.count / std::ssize(collective.group));
  const BufferId read = gathers ? buffer_of(pass.from) : all,
                 written = scatters ? buffer_of(pass.to) : all;
  add_collective(index, pass.stream, std::move(collective), read, written);
}

/// Packs each member's part separately, then adds the reduce-scatter.
void Lowering::reduce_scatter(LayerIndex index, const CollectivePass& pass,
                              CollectiveOp collective) {
  const BufferId from = buffer_of(pass.from), packed = buffer_of(pass.packed);
  std::int64_t element = 0;
  for (const int member : collective.group) {
    const Region region = pass.parts->owned(pass.parts->place(member));
    copy(index, from, add_slice(packed, element, program.buffer(packed).name, region, index),
         region, false);
    collective.counts.push_back(region.elements());
    element += region.elements();
  }
  add_collective(index, Stream::Halo, std::move(collective), packed, buffer_of(pass.to));
}

void Lowering::all_gather(LayerIndex index, const CollectivePass& pass, CollectiveOp collective) {
  const BufferId from = buffer_of(pass.from), packed = buffer_of(pass.packed),
                 to = buffer_of(pass.to);
  const std::vector<int> group = collective.group;
  collective.count = program.buffer(packed).region.elements();
  const auto part = [&](int member) { return pass.parts->owned(pass.parts->place(member)); };
  for (const int member : group) collective.counts.push_back(part(member).elements());
  add_collective(index, Stream::Halo, std::move(collective), from, packed);
  std::int64_t element = 0;
  for (const int member : group) {
    const Region region = part(member);
    copy(index, add_slice(packed, element, program.buffer(packed).name, region, index), to, region,
         false);
    element += region.elements();
  }
}

/// Returns the buffer of the output's gradient, which is the sum of the consumers' contributions.
BufferId Lowering::gradient_of_output(LayerIndex index) {
  State& at = state(index);
  SP_ASSERT(!at.contributions.empty(), "layer {} has no consumer that contributes to its gradient",
            layer(index).name);
  if (at.contributions.size() == 1) return at.contributions.front();
  const BufferId sum = add_buffer("d " + layer(index).name + ".y", TensorClass::ActivationGradient,
                                  at.distributions.home.owned(at.rank), index);
  const Shape shape = program.buffer(sum).region.shape();
  add_kernel(index,
             {.kind = KernelKind::Add,
              .x = shape,
              .y = shape,
              .attributes = AddAttributes{static_cast<int>(at.contributions.size())}},
             at.contributions, {sum});
  return sum;
}

}  // namespace stratplan
