// Layers that compute each element, or each position's channels, separately: pointwise functions,
// PReLU, dropout, softmax, normalizations over channels, sums of tensors, functions of two tensors.
#include <algorithm>

#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;
using What = ParameterRole;

void pointwise_forward(const Site& site, PassSink& passes) {
  passes.add(site.run(site.kernel(PointwiseForward), {site.input()}, {site.output()}));
}

void pointwise_backward(const Site& site, PassSink& passes) {
  const bool of_input = reads_input(site.head().as<Activation>().function);
  site.pass_back(passes, site.kernel(PointwiseBackward),
                 {of_input ? site.input() : site.output(), site.output_gradient()});
}

/// If one slope serves all channels, all elements are taken for elements of one channel.
LayerDistributions distribute_prelu(const Layer& layer, const Decomposition& decomposition) {
  LayerDistributions made = distribute_with_channels(layer, decomposition);
  if (layer.as<PReluLayer>().one_slope)
    made.channels = distribution({}, decomposition.grid, {}, Role::Gathered);
  return made;
}

Kernel prelu_kernel(const Site& site, KernelKind kind) {
  Kernel kernel = site.kernel(kind);
  if (site.head().as<PReluLayer>().one_slope)
    for (Shape* shape : {&kernel.x, &kernel.y}) {
      (*shape)[Axis::W] *= (*shape)[Axis::C];
      (*shape)[Axis::C] = 1;
    }
  return kernel;
}

void prelu_forward(const Site& site, PassSink& passes) {
  passes.add(site.run(prelu_kernel(site, PreluForward), {site.input(), site.parameter(What::Slope)},
                      {site.output()}));
}

/// The gradient of x is sent first, so that its transfers are under way while the gradient of the
/// slopes is computed.
void prelu_backward(const Site& site, PassSink& passes) {
  const Use x = site.input(), dy = site.output_gradient(), dx = site.input_gradient(),
            slope = site.parameter_gradient(What::Slope);
  const bool passes_back = site.wants_gradient(), trains = site.trains(What::Slope);
  if (passes_back) {
    passes.add(
        site.run(prelu_kernel(site, PreluBackward), {x, dy, site.parameter(What::Slope)}, {dx}));
    passes.add(site.send(0, dx));
  }
  if (trains) passes.add(site.run(prelu_kernel(site, PreluGradient), {x, dy}, {slope}));
  if (passes_back) passes.add(site.add(0, dx));
  if (trains) passes.add({site.fusion.head, GradientPass{slope}});
}

void dropout_forward(const Site& site, PassSink& passes) {
  if (site.infers)
    passes.add({site.fusion.head, AliasPass{site.output(), site.input()}});
  else
    passes.add(site.run(site.kernel(Dropout), {site.input()}, {site.output()}));
}

/// Drops the gradients of the elements that the forward kernel dropped.
void dropout_backward(const Site& site, PassSink& passes) {
  site.pass_back(passes, site.kernel(Dropout), {site.output_gradient()});
}

const char* channels_in_common(LayerKind kind) {
  if (kind == LayerKind::Softmax) return "the softmax runs over all channels";
  if (kind == LayerKind::LayerNorm) return "mean and variance are those of all channels";
  return "the sum of squares runs across neighbouring channels";
}

std::optional<std::string> why_not_across_channels(const Layer& layer, Dim dim,
                                                   const ProcessGrid& grid) {
  return why_not_but_channels(layer, dim, grid, channels_in_common(layer.kind));
}

void across_channels_forward(const Site& site, PassSink& passes) {
  const bool softmax = site.head().kind == LayerKind::Softmax;
  passes.add(site.run(site.kernel(softmax ? SoftmaxForward : LocalResponseForward), {site.input()},
                      {site.output()}));
}

void across_channels_backward(const Site& site, PassSink& passes) {
  const bool softmax = site.head().kind == LayerKind::Softmax;
  site.pass_back(passes, site.kernel(softmax ? SoftmaxBackward : LocalResponseBackward),
                 {softmax ? site.output() : site.input(), site.output_gradient()});
}

enum LayerNormTensors { RowStatistics };

void layer_norm_forward(const Site& site, PassSink& passes) {
  const Kernel kernel = site.kernel(LayerNormForward);
  const Use statistics = site.tensor(RowStatistics);
  passes.declare(statistics, {"statistics", TensorClass::Statistics,
                              flat(2 * kernel.x.elements() / kernel.x[Axis::C]), DataType::F64});
  passes.add(site.run(kernel,
                      {site.input(), site.parameter(What::Scale), site.parameter(What::Shift)},
                      {site.output(), statistics}));
}

/// As for PReLU, the gradient of x is sent first.
void layer_norm_backward(const Site& site, PassSink& passes) {
  const Use x = site.input(), dy = site.output_gradient(), dx = site.input_gradient(),
            statistics = site.tensor(RowStatistics);
  const bool passes_back = site.wants_gradient(),
             trains = site.trains(What::Scale) || site.trains(What::Shift);
  if (passes_back) {
    passes.add(site.run(site.kernel(LayerNormBackward),
                        {x, dy, statistics, site.parameter(What::Scale)}, {dx}));
    passes.add(site.send(0, dx));
  }
  if (trains)
    passes.add(
        site.run(site.kernel(LayerNormGradient), {x, dy, statistics},
                 {site.parameter_gradient(What::Scale), site.parameter_gradient(What::Shift)}));
  if (passes_back) passes.add(site.add(0, dx));
  for (const What what : {What::Scale, What::Shift})
    if (site.trains(what))
      passes.add({site.fusion.head, GradientPass{site.parameter_gradient(what)}});
}

void add_forward(const Site& site, PassSink& passes) {
  Kernel kernel = site.kernel(Add);
  kernel.as<AddAttributes>().inputs = static_cast<int>(site.head().inputs.size());
  std::vector<Use> reads;
  for (std::size_t input = 0; input < site.head().inputs.size(); ++input)
    reads.push_back(site.input(input));
  passes.add(site.run(std::move(kernel), std::move(reads), {site.output()}));
}

/// The gradient of each term is the gradient of the sum.
void add_backward(const Site& site, PassSink& passes) {
  for (std::size_t input = 0; input < site.head().inputs.size(); ++input) {
    if (!site.wants_gradient(input)) continue;
    passes.add(site.send(input, site.output_gradient()));
    passes.add(site.add(input, site.output_gradient()));
  }
}

/// If an input is broadcast along an axis, it has one element along that axis. All ranks that split
/// the axis need this element.
LayerDistributions distribute_binary(const Layer& layer, const Decomposition& decomposition) {
  LayerDistributions made = distribute_alike(layer, decomposition);
  for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
    Distribution& iteration = made.inputs[input].iteration;
    for (const Axis axis : all_axes) {
      if (!layer.repeats(input, axis)) continue;
      Split& split = iteration.splits[static_cast<std::size_t>(axis)];
      set_roles(iteration, split.by, Role::Gathered);
      split = {};
      iteration.shape[axis] = 1;
    }
  }
  return made;
}

Kernel binary_kernel(const Site& site, KernelKind kind) {
  Kernel kernel = site.kernel(kind);
  kernel.attributes = Binary{site.head().as<BinaryFunction>(), site.needed(1).shape()};
  return kernel;
}

void binary_forward(const Site& site, PassSink& passes) {
  passes.add(site.run(binary_kernel(site, BinaryForward), {site.input(0), site.input(1)},
                      {site.output()}));
}

void binary_backward(const Site& site, PassSink& passes) {
  for (std::size_t input = 0; input < 2; ++input) {
    if (!site.wants_gradient(input)) continue;
    const BinaryRow row = row_of(site.head().as<BinaryFunction>());
    const bool repeats =
        std::ranges::any_of(all_axes, [&](Axis axis) { return site.head().repeats(input, axis); });
    Use gradient = site.output_gradient();
    if (repeats || !row.passes_on[input]) {
      Kernel kernel = binary_kernel(site, BinaryBackward);
      kernel.as<Binary>().of = static_cast<int>(input);
      std::vector<Use> reads;
      if (row.reads[input].first) reads.push_back(site.input(0));
      if (row.reads[input].second) reads.push_back(site.input(1));
      reads.push_back(gradient);
      gradient = site.input_gradient(input);
      passes.add(site.run(std::move(kernel), std::move(reads), {gradient}));
    }
    passes.add(site.send(input, gradient));
    passes.add(site.add(input, gradient));
  }
}

}  // namespace

const LayerFamily pointwise{why_not_alike, distribute_alike, pointwise_forward, pointwise_backward};
const LayerFamily prelu{why_not_alike, distribute_prelu, prelu_forward, prelu_backward};
const LayerFamily dropout{why_not_alike, distribute_alike, dropout_forward, dropout_backward};
const LayerFamily across_channels{why_not_across_channels, distribute_alike,
                                  across_channels_forward, across_channels_backward};
const LayerFamily layer_norm{why_not_across_channels, distribute_with_channels, layer_norm_forward,
                             layer_norm_backward};
const LayerFamily addition{why_not_alike, distribute_alike, add_forward, add_backward};
const LayerFamily binary{why_not_alike, distribute_binary, binary_forward, binary_backward};

}  // namespace stratplan::layers
