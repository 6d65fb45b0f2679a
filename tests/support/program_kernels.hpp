#pragma once
// The effect of each kernel of a program on symbolic values, and the values that it must find: the
// second half of program_run.hpp.
#include "support/program_run.hpp"

namespace stratplan::test {

inline void ProgramRun::expect_shapes(int rank, const Op& op, const Kernel& kernel, BufferId x,
                                      BufferId y) {
  if (x >= 0)
    expect(kernel.x == buffer(rank, x).region.shape(),
           "the kernel's x has another shape than the buffer " + buffer(rank, x).name);
  if (y >= 0)
    expect(kernel.y == buffer(rank, y).region.shape(),
           "the kernel's y has another shape than the buffer " + buffer(rank, y).name);
  const Layer& layer = network_.layer(op.layer);
  const auto* upsample = std::get_if<UpsampleAttributes>(&kernel.attributes);
  expect(layer.resamples() == (upsample != nullptr),
         "another kind of layer is upsampled, or this one is not");
  if (const auto* by = std::get_if<Rearrangement>(&kernel.attributes)) {
    const Region positions = values_.of(op.layer).home.owned(rank);
    for (const Axis axis : spatial_axes) {
      const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
      const auto* to_space = std::get_if<DepthToSpaceLayer>(&layer.attributes);
      const std::int64_t block = to_space ? to_space->block[i] : layer.windows()[i].kernel;
      expect(by->block[i] == block, "another block than the layer's");
      expect(by->phase[i] == (to_space ? positions[axis].begin % block : 0),
             "the piece begins elsewhere in its block");
    }
    return;
  }
  for (const Axis axis : spatial_axes) {
    if (!upsample) break;
    const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
    const Interval positions = values_.of(op.layer).home.owned(axis, rank);
    const bool plain = layer.scales()[i].is_identity() && layer.input[axis] == layer.output[axis];
    expect(upsample->scales[i] ==
               (plain ? Scale{} : local_scale(layer.scales()[i], positions, layer.input[axis])),
           std::string("another scale than the local one along ") +
               axis_names[static_cast<std::size_t>(axis)]);
  }
  const bool slides = has_window(layer.kind) || layer.kind == LayerKind::FullyConnected;
  if (!slides || upsample) return;
  const Region output = values_.of(op.layer).raw.owned(rank);
  const std::array<Window, 3> windows = iteration_windows(layer);
  const auto local =
      layer.kind == LayerKind::TransposedConvolution ? local_transposed_window : local_window;
  for (const Axis axis : spatial_axes) {
    const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
    expect(kernel.windows()[i] == local(windows[i], output[axis], layer.input[axis]),
           std::string("another window than the local one along ") +
               axis_names[static_cast<std::size_t>(axis)]);
  }
}

inline void ProgramRun::expect_activation(const Kernel& kernel, const Fusion& fusion) {
  std::optional<Activation> wanted;
  if (fusion.activation >= 0) wanted = network_.layer(fusion.activation).as<Activation>();
  expect(kernel.epilogue().activation == wanted, "another activation than the layer's behind it");
}

/// Computes a piece of a convolution's output from the part of its input that the piece reads.
/// Other parts need not have arrived.
inline void ProgramRun::run_piece(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  const Layer& layer = network_.layer(op.layer);
  const Region output = buffer(rank, op.writes.at(0)).region;
  expect(here.raw.owned(rank).contains(output), "a piece of outputs that are not this rank's");
  Region input = here.inputs[0].region(rank);
  input[Axis::N] = output[Axis::N];
  for (const Axis axis : spatial_axes) {
    const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
    input[axis] = needed(layer.windows()[i], output[axis], layer.input[axis]);
    expect(kernel.windows()[i] == local_window(layer.windows()[i], output[axis], layer.input[axis]),
           "another window than the piece's");
  }
  expect(kernel.x == input.shape() && kernel.y == output.shape(),
         "the kernel has another shape than the piece");
  expect_values(rank, op.reads.at(0), input, "input",
                [&](const Element& element) { return values_.value(layer.inputs[0], element); });
  expect_parameter(rank, op.reads.at(1), here.weights->owned(rank));
  const bool bias_follows = layer.bias() && !kernel.as<ConvolutionAttributes>().bias;
  const Fusion& fusion = fusions_.at(op.layer);
  expect_activation(kernel, bias_follows ? Fusion{op.layer} : fusion);
  write(rank, op.writes.at(0), output, [&](const Element& element) {
    return values_.part_value(bias_follows ? op.layer : fusion.last(), rank, element);
  });
}

inline void ProgramRun::run_convolution(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  const Region weights = here.weights->owned(rank), output = here.raw.owned(rank);
  const bool transposed = network_.layer(op.layer).kind == LayerKind::TransposedConvolution;
  const KernelKind forward =
      transposed ? KernelKind::ConvolutionBackwardData : KernelKind::ConvolutionForward;
  if (kernel.kind == forward && buffer(rank, op.writes.at(0)).inside >= 0)
    return run_piece(rank, op, kernel);
  if (kernel.kind == forward) {
    BufferId x = op.reads.at(0), y = op.writes.at(0);
    if (transposed) std::swap(x, y);
    expect_shapes(rank, op, kernel, x, y);
    expect_input(rank, op.layer, 0, op.reads.at(0));
    expect_parameter(rank, op.reads.at(1), weights);
    if (kernel.as<ConvolutionAttributes>().bias) {
      expect_parameter(rank, op.reads.at(2), here.channels->owned(rank));
      expect(here.raw.dims_with(Role::Partial).empty(),
             "a bias is added before the sum over ranks");
    }
    const Fusion& fusion = fusions_.at(op.layer);
    const bool bias_follows =
        network_.layer(op.layer).bias() && !kernel.as<ConvolutionAttributes>().bias;
    expect_activation(kernel, bias_follows ? Fusion{op.layer} : fusion);
    write_output(rank, bias_follows ? op.layer : fusion.last(), op.writes.at(0));
  } else if (kernel.kind != KernelKind::ConvolutionBackwardFilter) {
    BufferId x = op.writes.at(0), y = op.reads.at(0);
    if (transposed) std::swap(x, y);
    expect_shapes(rank, op, kernel, x, y);
    expect_gradient(rank, op.layer, op.reads.at(0), output);
    expect_parameter(rank, op.reads.at(1), weights);
    write_contribution(rank, op.layer, op.writes.at(0));
  } else {
    expect_shapes(rank, op, kernel, op.reads.at(0), op.reads.at(1));
    expect_input(rank, op.layer, 0, op.reads.at(transposed ? 1 : 0));
    expect_gradient(rank, op.layer, op.reads.at(transposed ? 0 : 1), output);
    write(rank, op.writes.at(0), weights, [&](const Element&) { return term(op.layer, rank); });
  }
}

/// Represents sums by the number of terms that went into them.
inline void ProgramRun::count_sums(int rank, const Kernel& kernel, std::int64_t set_samples,
                                   const Region& x, BufferId sums) {
  const StatisticsSets& sets = kernel.sets();
  const auto into = view(rank, sums);
  const std::int64_t channels = x[Axis::C].size(),
                     positions = x[Axis::D].size() * x[Axis::H].size() * x[Axis::W].size();
  expect(into.size() == sets.sets * 2 * channels, "sums of another size than [sets][2][C]");
  expect(sets.first_sample == x[Axis::N].begin && sets.set_samples == set_samples &&
             sets.batch == network_.batch,
         "the sets do not describe this rank's samples");
  into.fill(0);
  for (std::int64_t n = x[Axis::N].begin; n < x[Axis::N].end; ++n) {
    const std::int64_t set = n / sets.set_samples - sets.first_set;
    if (set < 0 || set >= sets.sets) fail("the buffer lacks a sample's set");
    for (std::int64_t i = 0; i < 2 * channels; ++i)
      into[set * 2 * channels + i] += static_cast<double>(positions);
  }
}

inline void ProgramRun::expect_sums(int rank, const Kernel& kernel, const Region& x,
                                    BufferId sums) {
  const StatisticsSets& sets = kernel.sets();
  const auto from = view(rank, sums);
  const std::int64_t channels = x[Axis::C].size();
  for (std::int64_t n = x[Axis::N].begin; n < x[Axis::N].end; ++n) {
    const std::int64_t set = n / sets.set_samples;
    const std::int64_t samples =
        std::min(network_.batch, (set + 1) * sets.set_samples) - set * sets.set_samples;
    for (std::int64_t i = 0; i < 2 * channels; ++i) {
      const double found = from[(set - sets.first_set) * 2 * channels + i];
      if (found != static_cast<double>(samples * sets.positions))
        fail(fmt::format("set {} has {} terms of {}", set, found, samples * sets.positions));
    }
  }
}

inline void ProgramRun::run_normalization(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  const Layer& layer = network_.layer(op.layer);
  const Fusion& fusion = fusions_.at(op.layer);
  const Region home = here.home.owned(rank), channels = here.channels->owned(rank);
  expect(
      kernel.sets().positions == layer.input[Axis::D] * layer.input[Axis::H] * layer.input[Axis::W],
      "a set has another number of positions");
  expect(kernel.as<NormalizationAttributes>().epsilon == layer.as<NormalizationLayer>().epsilon,
         "another epsilon than the layer's");
  const std::int64_t set_samples =
                         layer.kind == LayerKind::BatchNorm ? network_.statistics_samples : 1,
                     group = kernel.sets().group_channels;
  expect(group == (layer.kind == LayerKind::GroupNorm ? layer.input[Axis::C] / layer.groups() : 1),
         "groups of another number of channels");
  expect(home[Axis::C].begin % group == 0 && home[Axis::C].end % group == 0, "a group is cut");
  if (kernel.kind != KernelKind::BatchNormBackward || !op.reads.empty())
    expect_input(rank, op.layer, 0, op.reads.at(0));
  switch (kernel.kind) {
    case KernelKind::BatchNormStatistics:
      count_sums(rank, kernel, set_samples, home, op.writes.at(0));
      break;
    case KernelKind::BatchNormForward:
      expect_sums(rank, kernel, home, op.reads.at(1));
      expect_parameter(rank, op.reads.at(2), channels);
      expect_parameter(rank, op.reads.at(3), channels);
      expect_activation(kernel, fusion);
      expect(kernel.epilogue().addend == (fusion.add >= 0),
             "what is to be added is not, or the reverse");
      if (kernel.epilogue().addend)
        expect_input(rank, fusion.add, network_.layer(fusion.add).inputs[0] == fusion.head ? 1 : 0,
                     op.reads.at(4));
      write_output(rank, fusion.last(), op.writes.at(0));
      break;
    case KernelKind::BatchNormBackwardSums:
      expect_gradient(rank, fusion.last(), op.reads.at(1), home);
      expect_sums(rank, kernel, home, op.reads.at(2));
      expect_activation(kernel, fusion);
      if (fusion.activation >= 0) expect_output(rank, fusion.activation, op.reads.at(3));
      if (fusion.activation >= 0 && fusion.add >= 0)
        write(rank, op.writes.at(3), home,
              [&](const Element& element) { return values_.gradient(fusion.add, element); });
      count_sums(rank, kernel, set_samples, home, op.writes.at(0));
      for (const std::size_t i : {1U, 2U})
        write(rank, op.writes.at(i), channels,
              [&](const Element&) { return term(op.layer, rank); });
      break;
    default:
      expect_gradient(rank, op.layer, op.reads.at(1), home);
      expect_sums(rank, kernel, home, op.reads.at(2));
      expect_sums(rank, kernel, home, op.reads.at(3));
      expect_parameter(rank, op.reads.at(4), channels);
      if (kernel.epilogue().activation) expect_output(rank, fusion.activation, op.reads.at(5));
      write_contribution(rank, op.layer, op.writes.at(0));
  }
}

/// Represents the sum of weights by the number of labels that went into it.
inline void ProgramRun::run_label_weights(int rank, const Op& op, const Kernel& kernel) {
  const auto labels = view(rank, op.reads.at(0));
  for (std::int64_t i = 0; i < labels.size(); ++i)
    if (labels[i] != label) fail("labels that were not loaded");
  if (kernel.as<CrossEntropyAttributes>().weighted)
    expect_parameter(rank, op.reads.at(1), values_.of(op.layer).channels->owned(rank));
  view(rank, op.writes.at(0))[0] = static_cast<double>(labels.size());
}

/// The terms of a mean, or the sum that the loss is divided by.
inline double ProgramRun::loss_terms(int rank, const Op& op, const Kernel& kernel) {
  if (kernel.kind == KernelKind::ElementwiseLoss) return kernel.as<ElementLossAttributes>().terms;
  if (kernel.kind == KernelKind::SoftmaxCrossEntropy) return kernel.as<LossAttributes>().terms;
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const CrossEntropyLayer& own = *network_.layer(op.layer).cross_entropy();
  expect(attributes.smoothing == own.label_smoothing && attributes.ignored == own.ignore_index &&
             attributes.weighted == own.weighted,
         "other options of the cross-entropy than the layer's");
  if (own.weighted)
    expect_parameter(rank, op.reads.at(2), values_.of(op.layer).channels->owned(rank));
  return own.counts_labels() ? view(rank, op.reads.at(own.weighted ? 3 : 2))[0] : attributes.terms;
}

inline void ProgramRun::run_loss(int rank, const Op& op, const Kernel& kernel) {
  const Region region = values_.of(op.layer).home.owned(rank);
  const bool per_channel = kernel.kind == KernelKind::ElementwiseLoss;
  const auto terms = [&](const Shape& shape) {
    return static_cast<double>(per_channel ? shape.elements() : shape.elements() / shape[Axis::C]);
  };
  const Layer& layer = network_.layer(op.layer);
  expect(loss_terms(rank, op, kernel) == terms(layer.input),
         "the mean is over another number of terms");
  expect(kernel.loss_weight() == network_.layer(op.layer).loss_weight,
         "another weight than the loss's");
  expect(!per_channel || kernel.as<ElementLossAttributes>().loss == layer.as<ElementLoss>(),
         "another loss than the layer's");
  expect_input(rank, op.layer, 0, op.reads.at(0));
  const auto labels = view(rank, op.reads.at(1));
  expect(static_cast<double>(labels.size()) == terms(region.shape()),
         "labels of another size than the terms");
  for (std::int64_t i = 0; i < labels.size(); ++i)
    if (labels[i] != label) fail("labels that were not loaded");
  const auto loss = view(rank, op.writes.at(0));
  expect(loss.size() == 1 && buffer(rank, op.writes.at(0)).type == DataType::F64,
         "the loss is no F64 scalar");
  loss[0] = terms(region.shape());
  write_contribution(rank, op.layer, op.writes.at(1));
}

/// Represents sums by the number of positions that went into them, and the loss by the number of
/// all, or of those in this rank's samples.
inline void ProgramRun::run_dice(int rank, const Op& op, const Kernel& kernel) {
  const Layer& loss = network_.layer(op.layer);
  const DiceLayer& own = *loss.dice();
  const bool sums = kernel.kind == KernelKind::DiceSums, each = own.sums == SumsOver::Sample;
  const std::int64_t positions = loss.input.elements() / loss.input[Axis::C],
                     sets = each ? kernel.x[Axis::N] : 1,
                     in_set = each ? positions / loss.input[Axis::N] : positions,
                     local = kernel.x.elements() / kernel.x[Axis::C];
  if (sums)
    expect(kernel.as<DiceSumsAttributes>() == DiceSumsAttributes{each, own.ignore_index},
           "other options than the layer's");
  else
    expect(kernel.as<DiceLossAttributes>() ==
               DiceLossAttributes{.epsilon = own.epsilon,
                                  .weight = loss.loss_weight,
                                  .per_sample = each,
                                  .divisor = each ? static_cast<double>(network_.batch) : 1,
                                  .ignored = own.ignore_index},
           "other options than the layer's");
  for (const double found : view(rank, op.reads.at(sums ? 1 : 0)).copy(0, local))
    if (found != label) fail("labels that were not loaded");
  if (sums) {
    expect_input(rank, op.layer, 0, op.reads.at(0));
    return view(rank, op.writes.at(0)).fill(static_cast<double>(local / sets));
  }
  for (const double found : view(rank, op.reads.at(1)).copy(0, sets * 3 * kernel.x[Axis::C]))
    if (found != static_cast<double>(in_set))
      fail(fmt::format("a class has sums over {} of {} positions", found, in_set));
  view(rank, op.writes.at(0))[0] = static_cast<double>(sets * in_set);
  write_contribution(rank, op.layer, op.writes.at(1));
}

/// The forward kernel reads the slopes beside its input; the gradient kernel writes their gradient.
inline void ProgramRun::run_prelu(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  const Region channels = here.channels->owned(rank);
  expect_input(rank, op.layer, 0, op.reads.at(0));
  if (kernel.kind != KernelKind::PreluForward)
    expect_gradient(rank, op.layer, op.reads.at(1), here.home.owned(rank));
  if (kernel.kind == KernelKind::PreluGradient)
    return write(rank, op.writes.at(0), channels,
                 [&](const Element&) { return term(op.layer, rank); });
  expect_parameter(rank, op.reads.back(), channels);
  if (kernel.kind == KernelKind::PreluForward) return write_output(rank, op.layer, op.writes.at(0));
  write_contribution(rank, op.layer, op.writes.at(0));
}

/// The forward kernel writes statistics that the other kernels read.
inline void ProgramRun::run_layer_norm(int rank, const Op& op, const Kernel& kernel) {
  constexpr double statistic = 11;
  const LayerDistributions& here = values_.of(op.layer);
  const Region channels = here.channels->owned(rank);
  expect_input(rank, op.layer, 0, op.reads.at(0));
  if (kernel.kind == KernelKind::LayerNormForward) {
    expect_parameter(rank, op.reads.at(1), channels);
    expect_parameter(rank, op.reads.at(2), channels);
    view(rank, op.writes.at(1)).fill(statistic);
    return write_output(rank, op.layer, op.writes.at(0));
  }
  expect_gradient(rank, op.layer, op.reads.at(1), here.home.owned(rank));
  for (const double found : view(rank, op.reads.at(2)).copy(0, view(rank, op.reads.at(2)).size()))
    if (found != statistic) fail("statistics were lost");
  if (kernel.kind == KernelKind::LayerNormGradient) {
    for (const BufferId gradient : op.writes)
      write(rank, gradient, channels, [&](const Element&) { return term(op.layer, rank); });
    return;
  }
  expect_parameter(rank, op.reads.at(3), channels);
  write_contribution(rank, op.layer, op.writes.at(0));
}

/// Represents a rank's share by its number plus one. The sum over the ranks that hold other samples
/// and positions is then known.
inline void ProgramRun::run_running(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  if (kernel.kind == KernelKind::BatchNormMoments) {
    expect_sums(rank, kernel, here.home.owned(rank), op.reads.at(0));
    return view(rank, op.writes.at(0)).fill(rank + 1.0);
  }
  expect(kernel.as<RunningAverageAttributes>().momentum == network_.running_momentum &&
             op.reads.at(1) == op.writes.at(0),
         "another momentum, or not in place");
  double sum = 0;
  for (const int member : here.channels->grid.group(rank, here.channels->dims_with(Role::Gathered)))
    sum += member + 1;
  for (const double found :
       view(rank, op.reads.at(0)).copy(0, 2 * here.channels->owned(rank).elements()))
    if (found != sum) fail(fmt::format("moments of {} instead of {}", found, sum));
}

inline void ProgramRun::run_copy(int rank, const Op& op, const Kernel& kernel) {
  const auto dense = [](const Shape& shape) { return whole(shape); };
  const auto from = view(rank, op.reads.at(0)), into = view(rank, op.writes.at(0));
  expect(kernel.x.elements() == from.size() && kernel.y.elements() == into.size(),
         "a copy's shapes differ from its buffers'");
  const auto& copy = kernel.as<CopyAttributes>();
  Region source;
  for (const std::size_t axis : {0U, 1U, 2U, 3U, 4U})
    source.interval[axis] = {copy.from[axis], copy.from[axis] + copy.region.extent[axis]};
  expect(dense(kernel.x).contains(source), "copies from outside of the source");
  for_each_element(source, [&](const Element& element) {
    Element target = element;
    for (const std::size_t axis : {0U, 1U, 2U, 3U, 4U}) {
      target[axis] += copy.to[axis] - copy.from[axis];
      if (target[axis] < 0 || target[axis] >= kernel.y.extent[axis])
        fail("copies outside of the destination");
    }
    const double value = from[static_cast<std::int64_t>(position_in(dense(kernel.x), element))];
    double& place = into[static_cast<std::int64_t>(position_in(dense(kernel.y), target))];
    if (std::isnan(value))
      fail("copies what was never written: " + buffer(rank, op.reads.at(0)).name);
    if (copy.accumulate && std::isnan(place))
      fail("adds to what was never written: " + buffer(rank, op.writes.at(0)).name);
    place = copy.accumulate ? place + value : value;
  });
}

inline void ProgramRun::run_update(int rank, const Op& op) {
  const auto value = view(rank, op.writes.at(0)), gradient = view(rank, op.reads.at(1)),
             velocity = view(rank, op.writes.at(1));
  expect(op.reads.at(0) == op.writes.at(0) && op.reads.at(2) == op.writes.at(1),
         "the update is not in place");
  expect(value.size() == gradient.size() && value.size() == velocity.size(),
         "the update's buffers differ in size");
  for (std::int64_t i = 0; i < value.size(); ++i) {
    if (std::isnan(gradient[i])) fail("a gradient that was never written");
    value[i] += 1;
    velocity[i] += gradient[i];  // finish() checks it
  }
}

inline void ProgramRun::run_pool(int rank, const Op& op, const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::MaxPoolForward:
      view(rank, op.writes.at(1)).fill(position_of_maximum);
      [[fallthrough]];
    case KernelKind::AveragePoolForward:
    case KernelKind::UpsampleForward:
    case KernelKind::ReduceForward:
    case KernelKind::RearrangeForward:
    case KernelKind::SpatialMeanForward:
      expect_shapes(rank, op, kernel, op.reads.at(0), op.writes.at(0));
      expect_input(rank, op.layer, 0, op.reads.at(0));
      return write_output(rank, op.layer, op.writes.at(0));
    case KernelKind::MaxPoolBackward:
      for (const double position :
           view(rank, op.reads.at(1)).copy(0, view(rank, op.reads.at(1)).size()))
        if (position != position_of_maximum) fail("positions of maxima were lost");
      [[fallthrough]];
    default:
      if (kernel.kind == KernelKind::ReduceBackward && op.reads.size() == 2) {  // of the greatest
        expect_input(rank, op.layer, 0, op.reads[0]);
        expect_gradient(rank, op.layer, op.reads[1], values_.of(op.layer).raw.owned(rank));
        return write_contribution(rank, op.layer, op.writes.at(0));
      }
      expect_shapes(rank, op, kernel, op.writes.at(0), op.reads.at(0));
      expect_gradient(rank, op.layer, op.reads.at(0), values_.of(op.layer).raw.owned(rank));
      write_contribution(rank, op.layer, op.writes.at(0));
  }
}

inline void ProgramRun::run_dropout(int rank, const Op& op, const ComputeOp& compute) {
  const Layer& layer = network_.layer(op.layer);
  const Region home = values_.of(op.layer).home.owned(rank);
  expect(compute.region == home && compute.global == layer.output,
         "dropout is misplaced in its global tensor");
  expect(compute.kernel.as<DropoutAttributes>().probability == layer.as<DropoutLayer>().probability,
         "another probability than the layer's");
  if (makes_output(rank, op)) {
    expect_input(rank, op.layer, 0, op.reads.at(0));
    return write_output(rank, op.layer, op.writes.at(0));
  }
  expect_gradient(rank, op.layer, op.reads.at(0), home);
  write_contribution(rank, op.layer, op.writes.at(0));
}

/// Forward this is the layer `add`, backward the sum of several consumers' gradients.
inline void ProgramRun::run_add(int rank, const Op& op, const Kernel& kernel) {
  expect(op.reads.size() == static_cast<std::size_t>(kernel.as<AddAttributes>().inputs),
         "an addition reads another number of buffers than it says");
  if (makes_output(rank, op)) {
    for (std::size_t input = 0; input < op.reads.size(); ++input)
      expect_input(rank, op.layer, input, op.reads[input]);
    return write_output(rank, op.layer, op.writes.at(0));
  }
  const auto into = view(rank, op.writes.at(0));
  std::vector<double> sums(static_cast<std::size_t>(into.size()), 0.0);
  for (const BufferId read : op.reads)
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += view(rank, read)[static_cast<std::int64_t>(i)];
  for (std::size_t i = 0; i < sums.size(); ++i) into[static_cast<std::int64_t>(i)] = sums[i];
}

/// Checks that the buffers hold what the kernel's operands state.
inline void ProgramRun::expect_operands(int rank, const std::vector<BufferId>& buffers,
                                        const std::vector<Operand>& operands) const {
  expect(buffers.size() == operands.size(), "another number of buffers than operands");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Buffer& found = buffer(rank, buffers[i]);
    if (found.type != operands[i].type || found.region.elements() != operands[i].elements)
      fail(fmt::format("buffer {} holds {} {}, the kernel expects {} {}", found.name,
                       found.region.elements(), name_of(found.type), operands[i].elements,
                       name_of(operands[i].type)));
  }
}

/// Backward the kernel reads what its row of the table says, and the gradient.
inline void ProgramRun::run_binary(int rank, const Op& op, const Kernel& kernel) {
  const LayerDistributions& here = values_.of(op.layer);
  const auto& [function, second, of] = kernel.as<stratplan::Binary>();
  expect(kernel.x == here.inputs[0].region(rank).shape() &&
             second == here.inputs[1].region(rank).shape() &&
             kernel.y == here.home.owned(rank).shape(),
         "the kernel has other shapes than its layer");
  if (kernel.kind == KernelKind::BinaryForward) {
    for (const std::size_t input : {0U, 1U})
      expect_input(rank, op.layer, input, op.reads.at(input));
    return write_output(rank, op.layer, op.writes.at(0));
  }
  const auto which = static_cast<std::size_t>(of);
  const binary::Inputs reads = row_of(function).reads[which];
  std::size_t next = 0;
  if (reads.first) expect_input(rank, op.layer, 0, op.reads.at(next++));
  if (reads.second) expect_input(rank, op.layer, 1, op.reads.at(next++));
  expect_gradient(rank, op.layer, op.reads.at(next), here.home.owned(rank));
  write_contribution(rank, op.layer, op.writes.at(0), which);
}

inline void ProgramRun::run_kernel(int rank, const Op& op, const ComputeOp& compute) {
  const Kernel& kernel = compute.kernel;
  expect_operands(rank, op.reads, kernel.operands().reads);
  expect_operands(rank, op.writes, kernel.operands().writes);
  const LayerIndex layer = op.layer;
  const auto home = [&] { return values_.of(layer).home.owned(rank); };
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward:
    case KernelKind::ConvolutionBackwardData:
    case KernelKind::ConvolutionBackwardFilter: return run_convolution(rank, op, kernel);
    case KernelKind::BiasAdd: {
      const Fusion& fusion = fusions_.at(layer);
      expect_output(rank, layer, op.writes.at(0));
      expect_activation(kernel, fusion);
      if (fusion.activation >= 0) write_output(rank, fusion.activation, op.writes.at(0));
      return expect_parameter(rank, op.reads.at(1), values_.of(layer).channels->owned(rank));
    }
    case KernelKind::BiasGradient:
      expect_gradient(rank, layer, op.reads.at(0), home());
      expect_activation(kernel, fusions_.at(layer));
      if (kernel.epilogue().activation) {
        expect_output(rank, fusions_.at(layer).activation, op.reads.at(1));
        write(rank, op.writes.at(1), home(),
              [&](const Element& element) { return values_.gradient(layer, element); });
      }
      return write(rank, op.writes.at(0), values_.of(layer).channels->owned(rank),
                   [&](const Element&) { return term(layer, rank); });
    case KernelKind::MaxPoolForward:
    case KernelKind::MaxPoolBackward:
    case KernelKind::AveragePoolForward:
    case KernelKind::AveragePoolBackward:
    case KernelKind::SpatialMeanForward:
    case KernelKind::UpsampleForward:
    case KernelKind::UpsampleBackward:
    case KernelKind::ReduceForward:
    case KernelKind::ReduceBackward:
    case KernelKind::RearrangeForward:
    case KernelKind::RearrangeBackward:
    case KernelKind::SpatialMeanBackward: return run_pool(rank, op, kernel);
    case KernelKind::BatchNormStatistics:
    case KernelKind::BatchNormForward:
    case KernelKind::BatchNormBackwardSums:
    case KernelKind::BatchNormBackward: return run_normalization(rank, op, kernel);
    case KernelKind::PreluForward:
    case KernelKind::PreluBackward:
    case KernelKind::PreluGradient: return run_prelu(rank, op, kernel);
    case KernelKind::LayerNormForward:
    case KernelKind::LayerNormBackward:
    case KernelKind::LayerNormGradient: return run_layer_norm(rank, op, kernel);
    case KernelKind::PointwiseForward:
    case KernelKind::SoftmaxForward:
    case KernelKind::LocalResponseForward:
      expect_input(rank, layer, 0, op.reads.at(0));
      return write_output(rank, layer, op.writes.at(0));
    case KernelKind::PointwiseBackward:
      if (reads_input(kernel.as<Activation>().function))
        expect_input(rank, layer, 0, op.reads.at(0));
      else
        expect_output(rank, layer, op.reads.at(0));
      expect_gradient(rank, layer, op.reads.at(1), home());
      return write_contribution(rank, layer, op.writes.at(0));
    case KernelKind::SoftmaxBackward:
      expect_output(rank, layer, op.reads.at(0));
      expect_gradient(rank, layer, op.reads.at(1), home());
      return write_contribution(rank, layer, op.writes.at(0));
    case KernelKind::LocalResponseBackward:
      expect_input(rank, layer, 0, op.reads.at(0));
      expect_gradient(rank, layer, op.reads.at(1), home());
      return write_contribution(rank, layer, op.writes.at(0));
    case KernelKind::BinaryForward:
    case KernelKind::BinaryBackward: return run_binary(rank, op, kernel);
    case KernelKind::Dropout: return run_dropout(rank, op, compute);
    case KernelKind::Add: return run_add(rank, op, kernel);
    case KernelKind::LabelWeights: return run_label_weights(rank, op, kernel);
    case KernelKind::WeightedCrossEntropy:
    case KernelKind::SoftmaxCrossEntropy:
    case KernelKind::ElementwiseLoss: return run_loss(rank, op, kernel);
    case KernelKind::BatchNormMoments:
    case KernelKind::RunningAverage: return run_running(rank, op, kernel);
    case KernelKind::BatchNormRunningSums:
      return fail("symbolic runs support no normalization by running statistics");
    case KernelKind::BatchNormInference: return fail("inference in a training program");
    case KernelKind::DiceSums:
    case KernelKind::DiceLoss: return run_dice(rank, op, kernel);
    case KernelKind::CopyRegion: return run_copy(rank, op, kernel);
    case KernelKind::Fill:
      return view(rank, op.writes.at(0)).fill(kernel.as<FillAttributes>().value);
    case KernelKind::Convert:
    case KernelKind::Widen: {
      const auto from = view(rank, op.reads.at(0)), to = view(rank, op.writes.at(0));
      for (std::int64_t i = 0; i < to.size(); ++i) to[i] = from[i];
      return;
    }
    case KernelKind::Unscale:
    case KernelKind::AdjustLossScale: return;  // symbolic values never overflow
    case KernelKind::SgdMomentum: return run_update(rank, op);
    case KernelKind::Sgd:
    case KernelKind::SgdNesterov:
    case KernelKind::Adam:
    case KernelKind::AdamW:
    case KernelKind::SquaredNorms:
    case KernelKind::Lars:
      return fail("symbolic runs support only SGD with momentum, not " + kernel.key());
  }
}

/// Checks the end state: no message is left over, every parameter was updated once with the
/// gradients of exactly the ranks that share it, and the loss is complete.
inline void ProgramRun::finish() {
  expect(mail_.empty(), "a message was sent that nobody received");
  for (int rank = 0; rank < ranks_; ++rank) {
    const Program& program = programs_[static_cast<std::size_t>(rank)];
    for (const ParameterSlice& slice : program.parameters) {
      const std::string name = "rank " + std::to_string(rank) + ", " + slice.name(network_) + ": ";
      const Distribution& parameter = values_.of(slice.layer).parameter(slice.what);
      expect(slice.region == parameter.owned(rank) && slice.global == parameter.shape,
             name + "another region or shape than its distribution's");
      double gradient = 0;
      for (const int member : parameter.grid.group(rank, parameter.dims_with(Role::Gathered)))
        gradient += term(slice.layer, member);
      const auto value = view(rank, slice.value), velocity = view(rank, slice.velocity);
      const auto member = std::ranges::find(slice.sharers, rank) - slice.sharers.begin();
      const std::int64_t all = slice.region.elements(),
                         share = slice.sharers.empty()
                                     ? all
                                     : slice.shares.at(static_cast<std::size_t>(member));
      expect(value.size() == (program.sharding < 3 ? all : share) && velocity.size() == share,
             name + "another share than the rank's");
      expect(slice.sharers.empty() ||
                 std::accumulate(slice.shares.begin(), slice.shares.end(), std::int64_t{0}) == all,
             name + "shares that are not the whole");
      for (std::int64_t i = 0; i < value.size(); ++i)
        if (value[i] != 1) fail(fmt::format("{}updated {} times", name, value[i]));
      for (std::int64_t i = 0; i < velocity.size(); ++i)
        if (velocity[i] != gradient)
          fail(fmt::format("{}updated with the gradients {} instead of {}", name, velocity[i],
                           gradient));
    }
    for (const LossValue& held : program.losses) check_loss(rank, held);
  }
}

/// Checks that a loss holds each of its terms once.
inline void ProgramRun::check_loss(int rank, const LossValue& held) {
  if (held.value < 0) return;
  const Layer& loss = network_.layer(held.layer);
  const bool per_channel = loss.kind == LayerKind::ElementwiseLoss;
  const std::int64_t terms =
      per_channel ? loss.input.elements() : loss.input.elements() / loss.input[Axis::C];
  const double found = view(rank, held.value)[0];
  if (found != static_cast<double>(terms))
    fail(fmt::format("rank {}: the loss {} holds {} of {} terms", rank, loss.name, found, terms));
}

}  // namespace stratplan::test
