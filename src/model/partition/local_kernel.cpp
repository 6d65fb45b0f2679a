#include "model/partition/local_kernel.hpp"

#include "model/base/assert.hpp"

namespace stratplan {

Kernel local_kernel(const Network& network, LayerIndex index,
                    const LayerDistributions& distributions, int rank, KernelKind kind) {
  const Layer& described = network.layer(index);
  const Needed& input = distributions.inputs.front();
  Kernel kernel;
  kernel.kind = kind;
  kernel.x = input.region(rank).shape();
  kernel.y = distributions.raw.owned(rank).shape();
  if (described.contracts_in_groups())
    kernel.groups = kernel.x[Axis::C] * described.groups / described.input[Axis::C];
  if (input.transposed) std::swap(kernel.x, kernel.y);
  kernel.count_padding = described.count_padding;
  for (const Axis axis : spatial_axes) {
    const auto i = static_cast<std::size_t>(spatial_index(axis));
    const Interval positions = input.iteration.owned(axis, rank);
    if (input.scales[i].factor > 1)
      kernel.scales[i] = local_scale(input.scales[i], positions, input.tensor[axis]);
    else
      kernel.windows[i] = (input.transposed ? local_transposed_window : local_window)(
          input.windows[i], positions, input.tensor[axis]);
  }
  switch (described.kind) {
    case LayerKind::BatchNorm:
    case LayerKind::InstanceNorm:
    case LayerKind::GroupNorm:
    case LayerKind::DiceLoss: kernel.scalar = described.epsilon; break;
    case LayerKind::Pointwise: kernel.pointwise = described.pointwise; break;
    case LayerKind::LocalResponseNorm: kernel.response = described.response; break;
    case LayerKind::Dropout: kernel.scalar = described.probability; break;
    case LayerKind::GlobalAveragePool:
      kernel.scalar = static_cast<double>(described.input[Axis::D] * described.input[Axis::H] *
                                          described.input[Axis::W]);
      break;
    case LayerKind::SoftmaxCrossEntropy:
      kernel.scalar = static_cast<double>(described.input.elements() / described.input[Axis::C]);
      break;
    case LayerKind::MeanSquaredError:
      kernel.scalar = static_cast<double>(described.input.elements());
      break;
    default: break;
  }
  if (is_loss(described.kind))
    kernel.scalar *=
        static_cast<double>(network.training.micro_batches);  // the mean is over the whole batch
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
                                 ? shape[Axis::C] / network.layer(index).groups
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

Kernel copy_kernel(const Region& source, const Region& from, const Region& destination,
                   const Region& to, DataType type, bool accumulate) {
  SP_ASSERT(source.contains(from) && destination.contains(to), "{} of {} -> {} of {}",
            to_string(from), to_string(source), to_string(to), to_string(destination));
  SP_ASSERT(from.shape() == to.shape(), "{} -> {}", to_string(from), to_string(to));
  Kernel kernel;
  kernel.kind = KernelKind::CopyRegion;
  kernel.type = type;
  kernel.accumulate = accumulate;
  kernel.x = source.shape();
  kernel.y = destination.shape();
  kernel.region = to.shape();
  for (const Axis axis : all_axes) {
    kernel.from[static_cast<std::size_t>(axis)] = from[axis].begin - source[axis].begin;
    kernel.to[static_cast<std::size_t>(axis)] = to[axis].begin - destination[axis].begin;
  }
  return kernel;
}

}  // namespace stratplan
