#include "model/cost/block_model.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/partition/local_kernel.hpp"
#include "model/partition/parameter_buffers.hpp"

namespace stratplan {
namespace {

Kernel copy_kernel(const Shape& source, const Shape& destination, const Shape& moved,
                   bool accumulate, DataType type = DataType::F32) {
  Kernel kernel;
  kernel.kind = KernelKind::CopyRegion;
  kernel.type = type;
  kernel.x = source;
  kernel.y = destination;
  kernel.region = moved;
  kernel.accumulate = accumulate;
  return kernel;
}

Kernel same_shape(KernelKind kind, const Shape& shape) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.x = kernel.y = shape;
  return kernel;
}

/// Kernels of a layer that is neither contraction nor normalization, placement nor loss.
struct Passes {
  KernelKind forward, backward;
  bool has_backward = true;
  bool keeps_output = false;
};
Passes passes_of(const Layer& layer) {
  using K = KernelKind;
  switch (layer.kind) {
    case LayerKind::MaxPool: return {K::MaxPoolForward, K::MaxPoolBackward};
    case LayerKind::AveragePool: return {K::AveragePoolForward, K::AveragePoolBackward};
    case LayerKind::Upsample: return {K::UpsampleForward, K::UpsampleBackward};
    case LayerKind::GlobalAveragePool: return {K::SpatialMeanForward, K::SpatialMeanBackward};
    case LayerKind::Pointwise:
      return {K::PointwiseForward, K::PointwiseBackward, true,
              !reads_input(layer.pointwise.function)};
    case LayerKind::Softmax: return {K::SoftmaxForward, K::SoftmaxBackward, true, true};
    case LayerKind::Dropout: return {K::Dropout, K::Dropout};
    case LayerKind::LocalResponseNorm: return {K::LocalResponseForward, K::LocalResponseBackward};
    case LayerKind::PReLU: return {K::PreluForward, K::PreluBackward};
    case LayerKind::Add: return {K::Add, K::Add, false};
    default: SP_ASSERT(false, "layer kind {}", name_of(layer.kind));
  }
  return {K::Fill, K::Fill};
}

bool makes_loss(KernelKind kind) {
  return kind == KernelKind::SoftmaxCrossEntropy || kind == KernelKind::MeanSquaredError ||
         kind == KernelKind::DiceLoss;
}

/// Of all parameters in one sweep: LARS is taken for the momentum that it applies.
KernelKind update_of(OptimizerKind optimizer) {
  return optimizer == OptimizerKind::Lars ? KernelKind::SgdMomentum : update_kernel(optimizer);
}

/// Buffers of a parameter's size that an optimizer keeps, beside its value and gradient.
int states_of(OptimizerKind optimizer) {
  const bool two = optimizer == OptimizerKind::Adam || optimizer == OptimizerKind::AdamW;
  return optimizer == OptimizerKind::Sgd ? 0 : two ? 2 : 1;
}

/// Adds up one fusion's steps.
class FusionModel {
 public:
  FusionModel(const Network& network, const Fusion& fusion, const Decomposition& decomposition,
              const Execution& execution, const Recomputation& recomputation,
              const MachineProfile& machine, BlockPieces& pieces)
      : network_(network),
        recomputation_(recomputation),
        remade_(recomputation.remade(fusion.last())),
        fusion_(fusion),
        head_(network.layer(fusion.head)),
        decomposition_(decomposition),
        execution_(execution),
        stored_(execution.precision.activations),
        machine_(machine),
        made_(distribute(head_, decomposition)),
        home_(made_.home.owned(0).shape()),
        micro_batches_(network.training.micro_batches),
        pieces_(pieces) {}

  void add() {
    load_inputs();
    keep_inputs();
    const LayerKind kind = head_.kind;
    if (is_contraction(kind))
      add_contraction();
    else if (has_statistics(kind))
      add_normalization();
    else if (is_loss(kind))
      add_loss();
    else if (places_inputs(kind))
      add_placement();
    else
      add_simple();
    add_parameters();
  }

 private:
  Kernel kernel(KernelKind kind) const {
    return local_kernel(network_, fusion_.head, made_, 0, kind);
  }
  bool reads_data(std::size_t input) const {
    return network_.layer(head_.inputs[input]).kind == LayerKind::Input;
  }
  Bytes stored(const Shape& shape) const { return {shape.elements() * size_of(stored_)}; }
  int parts(Dim dim) const { return decomposition_.grid.parts(dim); }

  void run(Seconds& phase, Kernel kernel, std::int64_t times) {
    if (works_on_activations(kernel.kind)) kernel.type = stored_;
    kernel.scaled =
        execution_.precision.scales_loss() && (is_update(kernel.kind) || makes_loss(kernel.kind));
    const StepCost cost = cost_of(kernel, machine_);
    phase += cost.seconds * static_cast<double>(times);
    pieces_.tier = std::max(pieces_.tier, cost.tier);
    pieces_.steps += times;
  }
  void forward(const Kernel& kernel) { run(pieces_.forward, kernel, micro_batches_); }
  void backward(const Kernel& kernel) { run(pieces_.backward, kernel, micro_batches_); }
  /// A kernel that makes the output; perhaps once more in the backward phase.
  void make(const Kernel& kernel, std::int64_t times = 1) {
    run(pieces_.forward, kernel, times * micro_batches_);
    if (remade_) run(pieces_.backward, kernel, times * micro_batches_);
  }
  double times_made() const { return each_time() * (remade_ ? 2 : 1); }
  void update(const Kernel& kernel) { run(pieces_.update, kernel, 1); }
  void keep(Bytes bytes) { pieces_.saved += bytes; }

  void communicate(BlockCollective collective) {
    int members = 1;
    for (const Dim dim : all_dims)
      if (collective.dims.contains(dim))
        members *= dim == Dim::N && collective.samples > 0 ? collective.samples : parts(dim);
    if (members == 1 || collective.bytes.value == 0) return;
    pieces_.steps += static_cast<std::int64_t>(std::ceil(collective.times));
    pieces_.collectives.push_back(collective);
  }
  double each_time() const { return static_cast<double>(micro_batches_); }

  void activate(Kernel& kernel) const {
    if (fusion_.activation >= 0)
      kernel.activation = activation_of(network_.layer(fusion_.activation));
  }
  /// The last layer's output is read again in the backward phase; a consumer that needs it anyway counts it.
  void keep_output() {
    const bool counted = kept_by_consumers(network_, recomputation_, fusion_.last());
    if (!counted && !recomputation_.dropped(fusion_.last())) keep(stored(home_));
  }
  /// What the backward phase reads of others' outputs, unless it is brought again.
  void keep_inputs() {
    for (const LayerIndex index : fusion_.layers()) {
      const Layer& layer = network_.layer(index);
      if (!backward_reads_input(layer) && !remade_) continue;
      const LayerDistributions made =
          index == fusion_.head ? made_ : distribute(layer, decomposition_);
      for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
        const bool inside = std::ranges::count(fusion_.layers(), layer.inputs[input]) > 0;
        if (!inside && !recomputation_.dropped(layer.inputs[input]))
          keep(stored(made.inputs[input].region(0).shape()));
      }
    }
  }

  Kernel conversion(const Shape& shape) const {
    Kernel kernel = same_shape(KernelKind::Convert, shape);
    kernel.type = stored_;
    return kernel;
  }

  void load_inputs() {
    for (std::size_t input = 0; input < head_.inputs.size(); ++input) {
      if (!reads_data(input)) continue;
      const Region region = made_.inputs[input].region(0);
      if (region.empty()) continue;
      const Kernel load = load_kernel({LoadStep::What::Samples, region, {}, 0});
      forward(load);
      const bool again = recomputation_.brings_again(fusion_.head, head_.inputs[input]);
      if (again) backward(load);
      if (!is_narrow(stored_)) continue;
      const Kernel narrow = conversion(region.shape());
      forward(narrow);
      if (again) backward(narrow);
    }
  }

  void add_contraction() {
    const bool transposed = head_.kind == LayerKind::TransposedConvolution;
    const bool partial = head_.mixes_channels() && parts(Dim::C) > 1;
    Kernel product =
        kernel(transposed ? KernelKind::ConvolutionBackwardData : KernelKind::ConvolutionForward);
    product.bias = head_.bias && !partial && !transposed;
    const bool bias_follows = head_.bias && !product.bias;
    if (!bias_follows) activate(product);
    make(product);
    if (partial) add_landing();
    if (bias_follows) {
      Kernel bias = same_shape(KernelKind::BiasAdd, home_);
      activate(bias);
      make(bias);
    }
    if (head_.bias) {
      Kernel bias = same_shape(KernelKind::BiasGradient, home_);
      activate(bias);
      backward(bias);
    } else if (fusion_.activation >= 0) {
      Kernel sign = same_shape(KernelKind::PointwiseBackward, home_);
      sign.pointwise = network_.layer(fusion_.activation).pointwise;
      backward(sign);
    }
    if (!reads_data(0))
      backward(kernel(transposed ? KernelKind::ConvolutionForward
                                 : KernelKind::ConvolutionBackwardData));
    backward(kernel(KernelKind::ConvolutionBackwardFilter));
    if (fusion_.activation >= 0) keep_output();
  }

  void add_landing() {
    const Shape raw = made_.raw.owned(0).shape();
    const Bytes bytes = stored(raw);
    if (decomposition_.landing == Landing::AllReduce)
      return communicate(
          {.type = stored_, .bytes = bytes, .dims = along_channels, .times = times_made()});
    // Every member's channels are packed and unpacked on their own.
    Kernel pack = copy_kernel(raw, home_, home_, false, stored_),
           unpack = copy_kernel(home_, raw, home_, false, stored_);
    make(pack, parts(Dim::C));
    run(pieces_.backward, unpack, micro_batches_ * parts(Dim::C));
    communicate({.op = Collective::ReduceScatter,
                 .type = stored_,
                 .bytes = bytes,
                 .dims = along_channels,
                 .times = times_made()});
    communicate({.op = Collective::AllGather,
                 .type = stored_,
                 .bytes = bytes,
                 .dims = along_channels,
                 .times = each_time()});
  }

  void add_normalization() {
    const StatisticsGroup group = statistics_group(network_, fusion_.head, made_, 0);
    Kernel pass = kernel(KernelKind::BatchNormStatistics);
    pass.sets = group.sets;
    const std::int64_t sums = group.sets.sets * 2 * pass.x[Axis::C];
    BlockCollective reduction{
        .type = DataType::F64, .bytes = {sums * 8}, .dims = along_blocks, .times = each_time()};
    reduction.samples = group.last_block - group.first_block + 1;
    if (group.alone) reduction.dims = {};
    forward(pass);
    communicate(reduction);
    const bool keeps_running = head_.kind == LayerKind::BatchNorm && network_.running_momentum != 0;
    if (keeps_running) add_running(pass);
    pass.kind = KernelKind::BatchNormForward;
    activate(pass);
    pass.addend = fusion_.add >= 0;
    make(pass);

    pass.kind = KernelKind::BatchNormBackwardSums;
    pass.addend = pass.addend && pass.activation.has_value();
    backward(pass);
    if (pass.addend) {
      pass.activation = {};
      pass.addend = false;
    }
    if (!reads_data(0)) {
      communicate(reduction);
      pass.kind = KernelKind::BatchNormBackward;
      backward(pass);
    }
    keep({sums * 8});
    if (fusion_.activation >= 0) keep_output();
  }

  void add_running(Kernel moments) {
    moments.kind = KernelKind::BatchNormMoments;
    forward(moments);
    const std::int64_t elements = 2 * moments.x[Axis::C];
    if (micro_batches_ > 1) {
      Kernel sum = copy_kernel(flat_kernel(KernelKind::Fill, elements).x,
                               flat_kernel(KernelKind::Fill, elements).x,
                               flat_kernel(KernelKind::Fill, elements).x, true);
      sum.type = DataType::F64;
      run(pieces_.forward, sum, micro_batches_ - 1);
    }
    communicate(
        {.type = DataType::F64, .bytes = {elements * 8}, .dims = along_blocks, .gradient = true});
    update(kernel(KernelKind::RunningAverage));
    pieces_.persistent += Bytes{elements * 4};
  }

  void add_simple() {
    const Passes passes = passes_of(head_);
    Kernel pass = kernel(passes.forward);
    pass.inputs = static_cast<int>(head_.inputs.size());
    make(pass);
    if (head_.kind == LayerKind::GlobalAveragePool)
      communicate(
          {.type = stored_, .bytes = stored(home_), .dims = along_space, .times = times_made()});
    if (passes.has_backward && !reads_data(0)) backward(kernel(passes.backward));
    if (head_.kind == LayerKind::PReLU) backward(kernel(KernelKind::PreluGradient));
    if (head_.kind == LayerKind::MaxPool && !reads_data(0) && !remade_)
      keep({home_.elements() * size_of(DataType::I32)});  // positions of the maxima
    if (passes.keeps_output && !reads_data(0)) keep_output();
  }

  void add_placement() {
    std::int64_t placed = 0;
    for (std::size_t input = 0; input < head_.inputs.size(); ++input) {
      const Shape part = made_.inputs[input].region(0).shape();
      placed += part.elements();
      if (part.elements() == 0) continue;
      make(copy_kernel(part, home_, part, false, stored_));
      if (!reads_data(input)) backward(copy_kernel(home_, part, part, false, stored_));
    }
    Kernel zeros = same_shape(KernelKind::Fill, home_);
    zeros.type = stored_;
    if (placed < home_.elements()) make(zeros);
  }

  void add_loss() {
    const bool classes = has_labels(head_.kind);
    Region wanted = made_.inputs.front().region(0);
    const Bytes gradient = stored(wanted.shape());
    if (classes) wanted[Axis::C] = {0, 1};
    forward(
        load_kernel({classes ? LoadStep::What::Labels : LoadStep::What::Targets, wanted, {}, 0}));
    if (head_.kind == LayerKind::DiceLoss) {
      forward(kernel(KernelKind::DiceSums));
      communicate(
          {.type = DataType::F64, .bytes = {3 * head_.input[Axis::C] * 8}, .dims = along_blocks});
      forward(kernel(KernelKind::DiceLoss));
    } else {
      forward(kernel(classes ? KernelKind::SoftmaxCrossEntropy : KernelKind::MeanSquaredError));
      Kernel sum = flat_kernel(KernelKind::Fill, 1);
      sum = copy_kernel(sum.x, sum.x, sum.x, true);
      sum.type = DataType::F64;
      run(pieces_.forward, sum, micro_batches_ - 1);
      communicate({.type = DataType::F64, .bytes = {8}, .dims = along_work});
    }
    if (!reads_data(0)) keep(gradient);
    if (execution_.precision.scales_loss()) add_loss_scale();
  }

  /// What a step does of it beside looking at gradients.
  void add_loss_scale() {
    Kernel none = flat_kernel(KernelKind::Fill, 1);
    none.type = DataType::F64;
    update(none);
    pieces_.persistent += Bytes{2 * size_of(DataType::F64)};
    communicate({.type = DataType::F64, .bytes = {8}, .dims = along_all, .gradient = true});
    update(flat_kernel(KernelKind::AdjustLossScale, 1));
  }

  void add_parameters() {
    std::vector<Shape> slices;
    if (made_.weights) slices.push_back(made_.weights->owned(0).shape());
    const int per_channel = has_statistics(head_.kind) ? 2 : made_.channels ? 1 : 0;
    for (int i = 0; i < per_channel; ++i) slices.push_back(made_.channels->owned(0).shape());
    std::int64_t elements = 0;
    for (const Shape& slice : slices) elements += padded_slice(slice.elements());
    if (elements == 0) return;
    const int members = parts(Dim::N) * parts(Dim::D) * parts(Dim::H) * parts(Dim::W);
    if (execution_.sharding > 0 && members > 1) return add_shares(slices, elements, members);
    put_aside(slices);
    change(elements, elements);
    if (converts()) convert(elements);
    const int copies = 2 + states_of(network_.training.optimizer) + (micro_batches_ > 1 ? 1 : 0);
    pieces_.persistent += Bytes{elements * 4 * copies};
    reduce(Collective::AllReduce, elements, true, 1);
  }

  /// The weights that contractions read are of the activations' type.
  bool converts() const { return is_narrow(stored_) && made_.weights; }
  /// Once, and kept; with sharding 3 in each phase that reads them: backward for the gradient of what was not loaded, or to make the output again.
  void convert(std::int64_t elements) {
    const Kernel all = conversion(flat_kernel(KernelKind::Convert, elements).x);
    const bool comes_and_goes = execution_.sharding == 3 &&
                                parts(Dim::N) * parts(Dim::D) * parts(Dim::H) * parts(Dim::W) > 1;
    run(pieces_.forward, all, comes_and_goes ? micro_batches_ : 1);
    if (comes_and_goes && (!reads_data(0) || remade_)) backward(all);
    if (!comes_and_goes) pieces_.persistent += Bytes{elements * size_of(stored_)};
  }
  void change(std::int64_t values, std::int64_t gradients) {
    if (execution_.precision.scales_loss()) update(flat_kernel(KernelKind::Unscale, gradients));
    update(flat_kernel(update_of(network_.training.optimizer), values));
  }

  /// Of all micro-batches but the last gradients are put aside, and those of the last are added to them.
  void put_aside(const std::vector<Shape>& slices) {
    if (micro_batches_ == 1) return;
    for (const Shape& slice : slices) {
      backward_once(copy_kernel(slice, slice, slice, false), 1);
      backward_once(copy_kernel(slice, slice, slice, true), micro_batches_ - 1);
    }
  }

  /// Travels in buckets that several layers share.
  void reduce(Collective op, std::int64_t elements, bool gradient, double times) {
    const Bytes bytes{elements * 4}, bucket = std::max(execution_.bucket_bytes, Bytes{4});
    communicate({.op = op,
                 .bytes = bucket,
                 .dims = along_blocks,
                 .gradient = gradient,
                 .times = times * (bytes / bucket)});
  }

  /// As lowering_sharding.cpp does, of a bucket of this fusion's own.
  void add_shares(const std::vector<Shape>& slices, std::int64_t filled, std::int64_t members) {
    const std::int64_t quantum = slice_elements * members,
                       all = (filled + quantum - 1) / quantum * quantum, share = all / members;
    const int stage = execution_.sharding;
    change(share, stage < 2 ? all : share);
    if (converts()) convert(all);
    pieces_.persistent += Bytes{4 * ((stage < 3 ? all : share) + (stage < 2 ? all : share) +
                                     share * states_of(network_.training.optimizer))};
    if (stage == 1) {
      put_aside(slices);
      if (micro_batches_ > 1) pieces_.persistent += Bytes{4 * all};
      reduce(Collective::AllReduce, all, true, 1);
    } else {
      for (std::size_t i = 0; i < slices.size(); ++i) {
        const std::int64_t gap = padded_slice(slices[i].elements()) - slices[i].elements() +
                                 (i + 1 == slices.size() ? all - filled : 0);
        if (gap > 0) backward(flat_kernel(KernelKind::Fill, gap));
      }
      backward_once(copy_kernel(flat_kernel(KernelKind::Fill, share).x,
                                flat_kernel(KernelKind::Fill, share).x,
                                flat_kernel(KernelKind::Fill, share).x, true),
                    micro_batches_ - 1);
      reduce(Collective::ReduceScatter, all, true, each_time());
    }
    reduce(Collective::AllGather, all, false, stage < 3 ? 1 : 2 * each_time());
  }
  void backward_once(const Kernel& kernel, std::int64_t times) {
    run(pieces_.backward, kernel, times);
  }

  const Network& network_;
  const Recomputation& recomputation_;
  const bool remade_;
  const Fusion& fusion_;
  const Layer& head_;
  const Decomposition& decomposition_;
  const Execution& execution_;
  const DataType stored_;  ///< activations
  const MachineProfile& machine_;
  const LayerDistributions made_;
  const Shape home_;
  const std::int64_t micro_batches_;
  BlockPieces& pieces_;
};

}  // namespace

BlockPieces BlockModel::pieces(const Decomposition& root) const {
  BlockPieces pieces;
  const std::vector<Decomposition> decompositions = spread(network_, block_, root);
  for (const Fusion& fusion : fuse(network_, block_, decompositions, execution_)) {
    const auto head = std::ranges::find(block_.layers, fusion.head) - block_.layers.begin();
    FusionModel(network_, fusion, decompositions[static_cast<std::size_t>(head)], execution_,
                recomputation_, machine_, pieces)
        .add();
  }
  return pieces;
}

}  // namespace stratplan
