#include "model/partition/layers/local_kernel.hpp"

#include "model/base/assert.hpp"

namespace stratplan {

namespace {

/// Fills in the attributes that follow from the layer and its distribution. Attributes that the
/// passes decide stay as they are.
struct LocalAttributes {
  const Network& network;
  const Layer& layer;
  const Needed& input;
  int rank;

  void operator()(ConvolutionAttributes& of) const {
    of.windows = windows();
    if (layer.contracts_in_groups())
      of.groups = input.region(Axis::C, rank).size() * layer.groups() / layer.input[Axis::C];
  }
  void operator()(PoolAttributes& of) const {
    of = {windows(), layer.as<PoolLayer>().count_padding};
  }
  void operator()(MeanAttributes& of) const {
    of.positions =
        static_cast<double>(layer.input[Axis::D] * layer.input[Axis::H] * layer.input[Axis::W]);
  }
  void operator()(NormalizationAttributes& of) const {
    of.epsilon = layer.as<NormalizationLayer>().epsilon;
  }
  void operator()(LayerNormAttributes& of) const {
    of.epsilon = layer.as<NormalizationLayer>().epsilon;
  }
  /// The loss is a mean over the whole batch, not over one micro-batch.
  void operator()(LossAttributes& of) const {
    of.terms = batch_terms(layer.input.elements() / layer.input[Axis::C]) / entropy_weight();
  }
  void operator()(CrossEntropyAttributes& of) const {
    const CrossEntropyLayer& own = *layer.cross_entropy();
    of.smoothing = own.label_smoothing;
    of.ignored = own.ignore_index;
    of.weighted = own.weighted;
    const std::int64_t positions = layer.input.elements() / layer.input[Axis::C];
    of.terms = (of.reads_divisor() ? 1 : batch_terms(positions)) / entropy_weight();
  }
  void operator()(ElementLossAttributes& of) const {
    of.loss = layer.as<ElementLoss>();
    of.terms = batch_terms(layer.input.elements());
  }
  void operator()(DiceSumsAttributes& of) const {
    of.per_sample = layer.dice()->sums == SumsOver::Sample;
    of.ignored = layer.ignored_label();
  }
  void operator()(DiceLossAttributes& of) const {
    const auto* both = std::get_if<DiceCrossEntropyLayer>(&layer.attributes);
    of.epsilon = layer.dice()->epsilon;
    of.per_sample = layer.dice()->sums == SumsOver::Sample;
    of.divisor =
        (of.per_sample ? batch_terms(layer.input[Axis::N]) : 1) / (both ? both->dice_weight : 1);
    of.ignored = layer.ignored_label();
  }
  void operator()(DropoutAttributes& of) const {
    of.probability = layer.as<DropoutLayer>().probability;
  }
  void operator()(Activation& of) const { of = layer.as<Activation>(); }
  void operator()(LocalResponse& of) const { of = layer.as<LocalResponse>(); }
  void operator()(UpsampleAttributes& of) const {
    for (const Axis axis : spatial_axes)
      if (const auto i = static_cast<std::size_t>(spatial_index(axis));
          !input.scales[i].is_identity() || input.iteration.shape[axis] != input.tensor[axis])
        of.scales[i] =
            local_scale(input.scales[i], input.iteration.owned(axis, rank), input.tensor[axis]);
  }
  void operator()(ReduceAttributes& of) const {
    const auto& [function, axes] = layer.as<ReduceLayer>();
    of = {function,
          function == Reduction::Mean ? static_cast<double>(terms_of(axes, layer.input)) : 1};
  }
  void operator()(Rearrangement& of) const {
    if (const auto* shuffle = std::get_if<ChannelShuffleLayer>(&layer.attributes))
      of.groups = shuffle->groups;
    if (const auto* made = std::get_if<DepthToSpaceLayer>(&layer.attributes)) {
      of.what = Rearranges::ToSpace;
      of.order = made->order;
      for (const Axis axis : spatial_axes) {
        const auto i = static_cast<std::size_t>(spatial_index(axis));
        of.block[i] = made->block[i];
        of.phase[i] = input.iteration.owned(axis, rank).begin % of.block[i];
      }
    }
    if (const auto* made = std::get_if<SpaceToDepthLayer>(&layer.attributes)) {
      of.what = Rearranges::ToDepth;
      of.order = made->order;
      for (std::size_t i = 0; i < 3; ++i) of.block[i] = made->windows[i].kernel;
    }
  }
  void operator()(auto&) const {}

 private:
  /// The factor of a cross-entropy that is part of a loss.
  double entropy_weight() const {
    const auto* both = std::get_if<DiceCrossEntropyLayer>(&layer.attributes);
    return both ? both->cross_entropy_weight : 1;
  }
  /// The number of terms of the whole batch, of which a micro-batch has `terms`.
  double batch_terms(std::int64_t terms) const {
    return static_cast<double>(terms) * static_cast<double>(network.training.micro_batches);
  }
  Windows windows() const {
    Windows local;
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(spatial_index(axis));
      local[i] = (input.transposed ? local_transposed_window : local_window)(
          input.windows[i], input.iteration.owned(axis, rank), input.tensor[axis]);
    }
    return local;
  }
};

}  // namespace

Kernel local_kernel(const Network& network, LayerIndex index,
                    const LayerDistributions& distributions, int rank, KernelKind kind) {
  const Needed& input = distributions.inputs.front();
  Kernel kernel{
      .kind = kind, .x = input.region(rank).shape(), .y = distributions.raw.owned(rank).shape()};
  if (input.transposed) std::swap(kernel.x, kernel.y);
  std::visit(LocalAttributes{network, network.layer(index), input, rank}, kernel.attributes);
  return kernel;
}

StatisticsGroup statistics_group(const Network& network, LayerIndex index,
                                 const LayerDistributions& distributions, int rank) {
  const ProcessGrid& grid = distributions.home.grid;
  const Shape& shape = network.layer(index).input;
  const bool batch_norm = network.layer(index).kind == LayerKind::BatchNorm;
  if (batch_norm && network.local_statistics) {
    const Shape own = distributions.home.owned(rank).shape();
    return {{.set_samples = own[Axis::N],
             .batch = own[Axis::N],
             .positions = own[Axis::D] * own[Axis::H] * own[Axis::W]},
            0,
            0,
            true};
  }
  const std::int64_t set = batch_norm ? network.statistics_samples : 1, parts = grid.parts(Dim::N);
  const auto separate = [&](std::int64_t sample) {
    return sample % set == 0 || sample == shape[Axis::N];
  };
  int first = grid.index(Dim::N, rank), last = first;
  while (!separate(block(shape[Axis::N], parts, first).begin)) --first;
  while (!separate(block(shape[Axis::N], parts, last).end)) ++last;
  const Interval samples{block(shape[Axis::N], parts, first).begin,
                         block(shape[Axis::N], parts, last).end};
  return {{.set_samples = set,
           .first_sample = distributions.home.owned(Axis::N, rank).begin,
           .first_set = samples.begin / set,
           .sets = (samples.size() + set - 1) / set,
           .batch = shape[Axis::N],
           .positions = shape[Axis::D] * shape[Axis::H] * shape[Axis::W],
           .group_channels = network.layer(index).kind == LayerKind::GroupNorm
                                 ? shape[Axis::C] / network.layer(index).groups()
                                 : 1},
          first,
          last,
          false};
}

Region flat(std::int64_t elements) {
  Shape shape;
  shape[Axis::C] = elements;
  return whole(shape);
}

Kernel flat_kernel(KernelKind kind, std::int64_t elements) {
  Kernel kernel{.kind = kind};
  kernel.x[Axis::C] = kernel.y[Axis::C] = elements;
  return kernel;
}

Kernel fill_kernel(std::int64_t elements, DataType type) {
  Kernel kernel = flat_kernel(KernelKind::Fill, elements);
  kernel.type = type;
  return kernel;
}

Kernel copy_kernel(const Region& source, const Region& from, const Region& destination,
                   const Region& to, DataType type, bool accumulate) {
  SP_ASSERT(source.contains(from) && destination.contains(to),
            "cannot copy region {} of a buffer over {} to region {} of a buffer over {}: a region "
            "exceeds its buffer",
            to_string(from), to_string(source), to_string(to), to_string(destination));
  SP_ASSERT(from.shape() == to.shape(), "cannot copy region {} to region {} of another shape",
            to_string(from), to_string(to));
  CopyAttributes copy{.accumulate = accumulate, .region = to.shape()};
  for (const Axis axis : all_axes) {
    copy.from[static_cast<std::size_t>(axis)] = from[axis].begin - source[axis].begin;
    copy.to[static_cast<std::size_t>(axis)] = to[axis].begin - destination[axis].begin;
  }
  return {.kind = KernelKind::CopyRegion,
          .x = source.shape(),
          .y = destination.shape(),
          .type = type,
          .attributes = copy};
}

}  // namespace stratplan
