#include "model/cost/closed_form/block_cost.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/partition/layers/layer_family.hpp"
#include "model/partition/lowering/parameter_schedule.hpp"

namespace stratplan {
namespace {

/// Adds up the costs of the passes of one fusion on one rank.
class FusionFold : public PassSink {
 public:
  FusionFold(const Site& site, const Recomputation& recomputation, const MachineProfile& machine,
             const std::vector<DimSet>& collective_dims, bool output_is_counted,
             BlockPieces& pieces)
      : site_(site),
        schedule_(site.network, site.execution, site.infers),
        recomputation_(recomputation),
        machine_(machine),
        collective_dims_(collective_dims),
        recomputed_(recomputation.recomputed(site.fusion.last())),
        output_is_counted_(output_is_counted),
        pieces_(pieces) {}

  void fold() {
    const LayerFamily& family = family_of(site_.head().kind);
    for (const LayerIndex layer : site_.fusion.layers())
      for (std::size_t input = 0; input < site_.layer(layer).inputs.size(); ++input)
        if (site_.reads_data(layer, input)) load(layer, input);
    phase_ = Phase::Forward;
    makes_output_ = true;
    family.forward(site_, *this);
    makes_output_ = false;
    phase_ = Phase::Backward;
    if (site_.network.needs_gradient(site_.fusion.head)) family.backward(site_, *this);
    fold_parameters();
    phase_ = Phase::Update;
    if (schedule_.scales_loss() && site_.fusion.head == site_.network.last_loss()) scale_loss();
    if (averages_) average();
  }

  void declare(const Use& tensor, const TensorSpec& spec) override {
    if (tensor.role != Use::Role::Tensor) return;
    const DataType type = spec.type.value_or(spec.tensor_class == TensorClass::Statistics
                                                 ? DataType::F64
                                                 : site_.execution.precision.activations);
    tensors_.push_back({tensor,
                        {spec.region.elements() * size_of(type)},
                        type,
                        phase_ == Phase::Forward && (spec.kept || !recomputed_)});
  }

  void add(const Pass& pass) override {
    std::visit([&](const auto& body) { take(pass, body); }, pass.body);
  }

 private:
  struct Tensor {
    Use use;
    Bytes bytes{};
    DataType type = DataType::F32;
    bool lasts = false;  ///< whether it is kept for the backward phase, if that phase reads it
  };

  std::int64_t micro_batches() const { return site_.network.training.micro_batches; }
  std::int64_t times(Occasion occasion) const {
    switch (occasion) {
      case Occasion::Each: return micro_batches();
      case Occasion::AllButFirst: return micro_batches() - 1;
      case Occasion::Between: return std::max<std::int64_t>(micro_batches() - 2, 0);
      case Occasion::First:
      case Occasion::Last: break;
    }
    return 1;
  }
  /// The number of times that a pass runs per step. The optimizer's update runs once.
  std::int64_t times(const Pass& pass) const {
    return phase_ == Phase::Update ? 1 : times(pass.occasion);
  }
  bool again(const Pass& pass) const { return recomputed_ && makes_output_ && !pass.kept; }

  void add(Phase phase, const OpCost& cost, std::int64_t times) {
    if (times == 0) return;
    (phase == Phase::Forward    ? pieces_.forward
     : phase == Phase::Backward ? pieces_.backward
                                : pieces_.update) += cost.seconds * static_cast<double>(times);
    pieces_.tier = std::max(pieces_.tier, cost.tier);
    pieces_.ops += times;
  }
  void price(Phase phase, const Kernel& kernel, std::int64_t times) {
    if (times > 0) add(phase, cost_of(kernel, machine_), times);
  }
  void price(const Pass& pass, const Kernel& kernel, std::int64_t copies = 1) {
    price(phase_, kernel, times(pass) * copies);
    if (again(pass)) price(Phase::Backward, kernel, times(pass) * copies);
  }

  void take(const Pass& pass, const KernelPass& body) {
    price(pass, body.kernel);
    for (const Use& use : body.reads) read(use, again(pass));
    for (const Use& use : body.writes) averages_ |= use.role == Use::Role::Moments;
  }
  void take(const Pass& pass, const LoadPass& body) {
    const OpCost cost = cost_of(LoadOp{body.what, body.region, {}, 0}, machine_);
    add(phase_, cost, times(pass));
    if (again(pass)) add(Phase::Backward, cost, times(pass));
  }
  void take(const Pass& pass, const CollectivePass& body) {
    if (body.parts) copy_parts(pass, body);
    const auto [bytes, type] = size_of_all(body);
    BlockCollective collective{
        .op = body.op,
        .type = type,
        .bytes = bytes,
        .dims = dims_of(body),
        .gradient = body.stream == Stream::Gradient &&
                    (body.op != Collective::AllGather || phase_ == Phase::Backward)};
    if (body.blocks) collective.samples = body.blocks->second - body.blocks->first + 1;
    collective.times = static_cast<double>(times(pass) * (again(pass) ? 2 : 1));
    if (is_of_bucket(body.from)) {  // layers can share a bucket, and each pays for its bytes
      const Bytes piece = std::max(site_.execution.bucket_bytes, Bytes{4}),
                  bucket{bucket_.elements * size_of(DataType::F32)};
      collective.times *= bucket / piece;
      collective.bytes = piece * bytes.value / bucket.value;
    }
    communicate(collective);
  }
  void take(const Pass&, const EdgePass& body) {  // edges have costs of their own
    if (body.what == EdgePass::What::Send) read(body.gradient, false);
  }
  /// The first layer of those that share a parameter pays for its parameter schedule. Every layer
  /// but the last, with which the backward phase begins, adds its gradient to those of others.
  void take(const Pass& pass, const GradientPass& body) {
    const auto role = static_cast<ParameterRole>(body.gradient.which);
    if (site_.network.last_user(site_.fusion.head, role) != site_.fusion.head) {
      const Region all = region_of(role);
      price(pass, copy_kernel(all, all, all, all, DataType::F32, true));
    }
    if (site_.network.first_user(site_.fusion.head, role) == site_.fusion.head)
      gradients_.push_back(role);
  }
  void take(const Pass&, const AliasPass&) {}

  /// Prices the copies that pack or unpack each member's part.
  void copy_parts(const Pass& pass, const CollectivePass& body) {
    const Region all = site_.of_head().raw.owned(site_.rank), own = body.parts->owned(site_.rank);
    const bool packs = body.op == Collective::ReduceScatter;
    price(pass,
          copy_kernel(packs ? all : own, own, packs ? own : all, own,
                      site_.execution.precision.activations),
          site_.parts(Dim::C));
  }

  /// The bytes and type of the longer of a collective's two tensors.
  std::pair<Bytes, DataType> size_of_all(const CollectivePass& body) const {
    const bool longer_is_to = body.op == Collective::AllGather && is_of_bucket(body.to);
    const Use& use = body.parts ? body.packed : longer_is_to ? body.to : body.from;
    const DataType stored = site_.execution.precision.activations;
    switch (use.role) {
      case Use::Role::Output: return {stored_bytes(site_.home()), stored};
      case Use::Role::Tensor:
        for (const Tensor& tensor : tensors_)
          if (tensor.use == use) return {tensor.bytes, tensor.type};
        break;
      case Use::Role::Loss:
      case Use::Role::Overflows: return {{size_of(DataType::F64)}, DataType::F64};
      case Use::Role::AllMoments: return {{use.count * size_of(DataType::F64)}, DataType::F64};
      default: break;
    }
    SP_ASSERT(is_of_bucket(use), "role={}", static_cast<int>(use.role));
    const std::int64_t elements = use.count < 0 ? bucket_.elements : use.count;
    const bool narrow = use.role == Use::Role::NarrowGradients;
    const DataType type = narrow ? site_.execution.precision.gradient_sums : DataType::F32;
    return {{elements * size_of(type)}, type};
  }
  Bytes stored_bytes(const Region& region) const {
    return {region.elements() * size_of(site_.execution.precision.activations)};
  }

  /// The set in collective_dims_ that equals the collective's dimensions. Dimensions with one part
  /// may differ.
  DimSet dims_of(const CollectivePass& body) const {
    DimSet wanted;
    if (is_of_bucket(body.from)) return body.among_replicas ? along_replicas : dims_of_bucket_;
    for (const Dim dim : body.dims) wanted.insert(dim);
    const auto alike = [&](DimSet known) {
      return std::ranges::all_of(all_dims, [&](Dim dim) {
        return site_.parts(dim) == 1 || known.contains(dim) == wanted.contains(dim);
      });
    };
    if (std::ranges::find(collective_dims_, wanted) != collective_dims_.end()) return wanted;
    const auto found = std::ranges::find_if(collective_dims_, alike);
    SP_ASSERT(found != collective_dims_.end(),
              "layer {} communicates along other dimensions than its network", site_.head().name);
    return *found;
  }

  void communicate(const BlockCollective& collective) {
    int members = 1;
    for (const Dim dim : all_dims)
      if (collective.dims.contains(dim))
        members *= dim == Dim::N && collective.samples > 0 ? collective.samples : site_.parts(dim);
    if (members == 1 || collective.bytes.value == 0 || collective.times == 0) return;
    pieces_.ops += static_cast<std::int64_t>(std::ceil(collective.times));
    pieces_.collectives.push_back(collective);
  }

  void load(LayerIndex layer, std::size_t input) {
    const LayerIndex data = site_.layer(layer).inputs[input];
    for (const Phase phase : {Phase::Forward, Phase::Backward}) {
      if (phase == Phase::Backward && !recomputation_.brings_again(layer, data)) continue;
      phase_ = phase;
      load_data(site_.execution, layer, input, distributions_of(layer).inputs[input], site_.rank,
                *this);
    }
  }
  const LayerDistributions& distributions_of(LayerIndex layer) const {
    return layer == site_.fusion.head ? site_.of_head() : *site_.distributions[1];
  }

  // ---------------------------------------------------------------- memory

  /// Counts a tensor as saved if the backward phase reads it and it was kept from the forward
  /// phase.
  void read(const Use& use, bool is_again) {
    const bool backward = phase_ == Phase::Backward;
    if (use.role == Use::Role::ConvertedWeights) reads_weights_backward_ |= backward || is_again;
    if (!backward && !is_again) return;
    if (use.role == Use::Role::Input &&
        !recomputation_.dropped(site_.layer(use.layer).inputs[static_cast<std::size_t>(use.which)]))
      keep(use, stored_bytes(
                    distributions_of(use.layer).inputs[static_cast<std::size_t>(use.which)].region(
                        site_.rank)));
    if (!backward) return;
    if (use.role == Use::Role::Output && !output_is_counted_ &&
        !recomputation_.dropped(site_.fusion.last()))
      keep(use, stored_bytes(site_.home()));
    if (use.role == Use::Role::Tensor)
      for (const Tensor& tensor : tensors_)
        if (tensor.use == use && tensor.lasts) keep(use, tensor.bytes);
  }
  void keep(const Use& use, Bytes bytes) {
    if (std::ranges::find(kept_, use) != kept_.end()) return;
    kept_.push_back(use);
    pieces_.saved += bytes;
  }

  // ---------------------------------------------------------------- parameters

  /// What the parameters of a bucket have in common.
  struct Kind {
    bool trained = true, shared = false;
    int group = -1;              ///< index in Training::groups, or -1
    DimSet dims = along_blocks;  ///< along which their gradients are summed
    friend bool operator==(const Kind&, const Kind&) = default;
  };

  /// The gradients of shared parameters are summed over all ranks that hold the same block, those
  /// of others over the ranks that do not repeat each other's work.
  Kind kind_of(ParameterRole role) const {
    if (!site_.trains(role)) return {.trained = false};
    const Distribution& parameter = site_.of_head().parameter(role);
    const bool by_filters = parameter.role(Dim::F) == Role::Block,
               by_channels = parameter.role(Dim::C) == Role::Block;
    const int group = site_.network.group_of(site_.fusion.head, role);
    if (!site_.network.is_shared(site_.fusion.head, role))
      return {.group = group,
              .dims = parameter.role(Dim::F) == Role::Gathered ? along_work : along_blocks};
    return {.shared = true,
            .group = group,
            .dims = by_filters && by_channels ? along_same
                    : by_filters              ? along_same_channels
                    : by_channels             ? along_same_filters
                                              : along_all};
  }
  Region region_of(ParameterRole role) const {
    return site_.of_head().parameter(role).owned(site_.rank);
  }
  std::int64_t members(DimSet dims) const {
    std::int64_t members = 1;
    for (const Dim dim : all_dims)
      if (dims.contains(dim)) members *= site_.parts(dim);
    return members;
  }

  /// Takes the parameters of one kind for a bucket of their own, and prices their schedule.
  void fold_bucket(const Kind& kind, const std::vector<ParameterRole>& roles) {
    bucket_ = Bucket{.trained = kind.trained, .group = kind.group};
    dims_of_bucket_ = kind.dims;
    slices_.clear();
    for (const ParameterRole role : roles) {
      if (kind_of(role) != kind) continue;
      const Region region = region_of(role);
      slices_.push_back({site_.fusion.head, role, region, bucket_.elements});
      bucket_.elements = bucket_.filled = bucket_.elements + padded_slice(region.elements());
    }
    if (bucket_.elements == 0) return;
    bucket_.members = members(kind.dims);
    if (!kind.shared) bucket_.replicas = site_.parts(Dim::R);
    if (schedule_.shares(bucket_, 1) || (kind.trained && bucket_.in_parts()))
      schedule_.divide(bucket_);
    phase_ = Phase::Backward;
    if (bucket_.trained) reduce();
    gather_and_convert();
    pieces_.persistent += schedule_.persistent(bucket_);
    phase_ = Phase::Update;
    if (bucket_.trained) update_parameters();
  }
  void fold_parameters() {
    std::vector<ParameterRole> untrained;
    for (const auto& [role, shape] : site_.head().parameters())
      if (!site_.trains(role) &&
          site_.network.first_user(site_.fusion.head, role) == site_.fusion.head)
        untrained.push_back(role);
    const int groups = static_cast<int>(std::ssize(site_.network.training.groups));
    for (int group = -1; group < groups; ++group) {
      for (const DimSet dims : {along_blocks, along_work})
        fold_bucket({.group = group, .dims = dims}, gradients_);
      for (const DimSet dims : {along_all, along_same, along_same_filters, along_same_channels})
        fold_bucket({.shared = true, .group = group, .dims = dims}, gradients_);
    }
    fold_bucket({.trained = false}, untrained);
  }
  void reduce() {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const BucketSlice& slice = slices_[i];
      schedule_.accumulate(bucket_, slice, *this);
      if (schedule_.shares(bucket_, 2))
        schedule_.fill_gap(bucket_, slice.layer, slice.begin + slice.region.elements(),
                           i + 1 < slices_.size() ? slices_[i + 1].begin : bucket_.elements, *this);
    }
    if (schedule_.shares(bucket_, 2))
      schedule_.reduce_to_shares(bucket_, site_.fusion.head, *this);
    else
      schedule_.reduce(bucket_, site_.fusion.head, 0, bucket_.summed(), *this);
  }
  /// Prices the gathering and the conversion of parameters. At sharding stage 3, each phase gathers
  /// the parameters again, even if only other fusions of the bucket read them.
  void gather_and_convert() {
    const LayerIndex head = site_.fusion.head;
    const bool come_and_go = schedule_.shares(bucket_, 3),
               narrow = schedule_.converts() && slices_.front().what == ParameterRole::Weights;
    for (const Phase phase : {Phase::Forward, Phase::Backward}) {
      phase_ = phase;
      if (come_and_go) schedule_.gather(bucket_, head, Stream::Halo, *this);
      const bool converts = phase == Phase::Forward || (come_and_go && reads_weights_backward_);
      if (narrow && converts) schedule_.convert(bucket_, head, *this);
    }
    if (narrow && !come_and_go)
      pieces_.persistent +=
          Bytes{bucket_.elements * size_of(site_.execution.precision.activations)};
  }
  void update_parameters() {
    schedule_.widen_sums(bucket_, *this);
    if (schedule_.scales_loss()) schedule_.unscale(bucket_, *this);
    if (site_.network.training.optimizer != OptimizerKind::Lars)
      return schedule_.update(bucket_, *this);
    for (const BucketSlice& slice : slices_) {
      if (schedule_.has_trust(slice)) schedule_.take_norms(slice, *this);
      schedule_.update(slice, *this);
    }
  }
  void scale_loss() {
    schedule_.begin_overflows(*this);
    schedule_.sum_overflows(*this);
    schedule_.adjust_loss_scale(*this);
    pieces_.persistent += Bytes{2 * size_of(DataType::F64)};
  }
  void average() {
    const Region channels = site_.of_head().channels->owned(site_.rank);
    schedule_.sum_moments(0, site_.fusion.head, {Dim::N, Dim::D, Dim::H, Dim::W},
                          2 * channels.elements(), *this);
    schedule_.average(site_, *this);
    pieces_.persistent += Bytes{2 * channels.elements() * size_of(DataType::F32)};
  }

  const Site& site_;
  const ParameterSchedule schedule_;
  const Recomputation& recomputation_;
  const MachineProfile& machine_;
  const std::vector<DimSet>& collective_dims_;
  const bool recomputed_, output_is_counted_;
  BlockPieces& pieces_;
  Phase phase_ = Phase::Forward;
  std::vector<Tensor> tensors_;
  std::vector<Use> kept_;
  std::vector<BucketSlice> slices_;
  std::vector<ParameterRole> gradients_;  ///< of which this fusion completes the gradients
  Bucket bucket_;
  DimSet dims_of_bucket_ = along_blocks;
  /// whether the current passes make the output; such passes run again if the output is recomputed
  bool makes_output_ = false;
  bool reads_weights_backward_ = false, averages_ = false;
};

/// The dimensions that a layer's reduction adds along, if they split its input.
DimSet reduced_dims(const Layer& layer) {
  ProcessGrid::Factors two;
  two.fill(2);
  DimSet dims;
  for (const Dim dim : distribute(layer, {ProcessGrid({two})}).raw.dims_with(Role::Partial))
    dims.insert(dim);
  return dims;
}

}  // namespace

std::vector<DimSet> collective_dims_of(const Network& network) {
  std::vector<DimSet> sets{along_channels, along_space, along_blocks,
                           along_work,     along_all,   along_replicas};
  const auto add = [&](DimSet dims) {
    if (std::ranges::find(sets, dims) == sets.end()) sets.push_back(dims);
  };
  if (std::ranges::any_of(network.parameters, &Parameter::shared))
    for (const DimSet dims : {along_same, along_same_filters, along_same_channels}) add(dims);
  for (const Layer& layer : network.layers) {
    if (layer.kind == LayerKind::Reduce) add(reduced_dims(layer));
    if (layer.dice() && layer.dice()->sums == SumsOver::Sample) add({Dim::N});
  }
  return sets;
}

ClosedFormBlockCost::ClosedFormBlockCost(const Network& network, const Block& block,
                                         const Execution& execution, const MachineProfile& machine)
    : network_(network),
      block_(block),
      execution_(execution),
      machine_(machine),
      recomputation_(network, execution.recompute),
      collective_dims_(collective_dims_of(network)) {
  for (const LayerIndex layer : block.layers)
    counted_.push_back(kept_by_consumers(network, recomputation_, layer));
}

BlockPieces ClosedFormBlockCost::pieces(const Decomposition& root, int rank) const {
  BlockPieces pieces;
  const std::vector<Decomposition> decompositions = spread(network_, block_, root);
  const auto place = [&](LayerIndex layer) {
    return static_cast<std::size_t>(std::ranges::find(block_.layers, layer) -
                                    block_.layers.begin());
  };
  for (const Fusion& fusion : fuse(network_, block_, decompositions, execution_)) {
    const Decomposition& of_head = decompositions[place(fusion.head)];
    const LayerDistributions head = distribute(network_.layer(fusion.head), of_head);
    LayerDistributions behind;
    Site site{.network = network_,
              .execution = execution_,
              .fusion = fusion,
              .decomposition = of_head,
              .distributions = {&head},
              .rank = rank};
    if (fusion.add >= 0) {
      behind = distribute(network_.layer(fusion.add), decompositions[place(fusion.add)]);
      site.distributions[1] = &behind;
    }
    FusionFold(site, recomputation_, machine_, collective_dims_, counted_[place(fusion.last())],
               pieces)
        .fold();
  }
  return pieces;
}

}  // namespace stratplan
