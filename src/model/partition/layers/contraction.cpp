// Contractions: convolutions, transposed convolutions, fully connected layers. A fully connected
// layer is a convolution whose kernel covers the whole spatial extent (iteration_windows()).
#include <fmt/format.h>

#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;
using What = ParameterRole;

/// F and C, in this order, split the groups of channels, and each rank must have whole groups.
/// Blocks of filters are balanced as in every layer, so that layers folded behind this layer can
/// inherit the blocks. So a split is legal only if each block of filters ends where a group ends.
/// Then each block of input channels ends where a group ends, too.
std::optional<std::string> why_not_groups(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  const std::int64_t parts = std::int64_t{grid.parts(Dim::F)} *
                             (dim == Dim::C ? grid.parts(Dim::C) : 1),
                     filters = layer.filters() / layer.groups();
  if (parts > layer.groups())
    return fmt::format("{} cannot split {} groups of channels", factor_text(dim, grid),
                       layer.groups());
  if (filters == 1 || layer.groups() % parts == 0) return {};
  return fmt::format(
      "{} cuts {} groups of {} filters, but each block of filters must end where a group ends",
      factor_text(dim, grid), layer.groups(), filters);
}

std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  const bool along_space = dim == Dim::D || dim == Dim::H || dim == Dim::W;
  if (layer.contracts_in_groups() && (dim == Dim::F || dim == Dim::C))
    return why_not_groups(layer, dim, grid);
  if (dim == Dim::F) return too_many(dim, grid, layer.filters(), "filter");
  if (dim == Dim::C) return too_many(dim, grid, layer.input[Axis::C], "channel");
  if (layer.kind == LayerKind::FullyConnected && along_space)
    return "the kernel of a fully connected layer covers the whole spatial extent, which " +
           factor_text(dim, grid) + " would split";
  return why_not_alike(layer, dim, grid);
}

/// Weights of a transposed convolution have the input channels on the outer axis and the filters on
/// the inner axis. In a convolution with several groups, F and C both split the outer axis.
Distribution weights_distribution(const Layer& layer, const ProcessGrid& grid) {
  const Shape shape = layer.weights();
  if (!layer.mixes_channels()) {
    Distribution grouped =
        distribution(shape, grid, {{{Dim::F, Dim::C}, {}, {}, {}, {}}}, Role::Gathered);
    grouped.splits[static_cast<std::size_t>(Axis::N)].quantum = shape[Axis::N] / layer.groups();
    return grouped;
  }
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  const Dim outer = transposed ? Dim::C : Dim::F, inner = transposed ? Dim::F : Dim::C;
  return distribution(shape, grid, {{{outer}, {inner}, {}, {}, {}}}, Role::Gathered);
}

/// The output is summed over the C ranks. After an all-reduce, each of these ranks has all channels
/// of its F block. After a reduce-scatter, each has a share of these channels. With an all-reduce,
/// each rank also has the complete gradient of the output, and so the complete bias gradient.
LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  const ProcessGrid& grid = decomposition.grid;
  const bool mixes = layer.mixes_channels(),
             reduces_all = mixes && decomposition.output_layout == OutputLayout::AllReduce;
  const DimList reduced = reduces_all ? DimList{Dim::F} : DimList{Dim::F, Dim::C};
  Shape work = layer.output;
  work[Axis::C] = layer.input[Axis::C];
  Distribution iteration =
      split(work, grid, mixes ? DimList{Dim::C} : DimList{Dim::F, Dim::C}, Role::Gathered);
  if (layer.contracts_in_groups())
    iteration.splits[static_cast<std::size_t>(Axis::C)].quantum =
        layer.input[Axis::C] / layer.groups();
  LayerDistributions made;
  made.inputs = needed_inputs(layer, iteration);
  made.raw = split(layer.output, grid, mixes ? DimList{Dim::F} : reduced, Role::Redundant);
  if (mixes) set_roles(made.raw, {Dim::C}, Role::Partial);
  made.home = split(layer.output, grid, reduced, Role::Redundant);
  made.weights = weights_distribution(layer, grid);
  if (layer.bias()) made.channels = channel_distribution(layer, grid, reduced);
  if (layer.bias() && reduces_all) set_roles(*made.channels, {Dim::C}, Role::Redundant);
  return made;
}

enum Tensors { Partial, Packed, Gathered, PartialGradient };

/// Whether a reduce-scatter sums over the C ranks and leaves each rank a share of the channels.
bool scatters(const Site& site) {
  return !site.of_head().raw.dims_with(Role::Partial).empty() &&
         site.decomposition.output_layout == OutputLayout::ReduceScatter;
}

/// Sums the output over the C ranks. Each rank has computed one term of each output element.
void land(const Site& site, PassSink& passes) {
  if (!scatters(site))
    return passes.add(
        {site.fusion.head,
         CollectivePass{.from = site.output(), .to = site.output(), .dims = {Dim::C}}});
  const std::int64_t elements = site.of_head().raw.owned(site.rank).elements();
  passes.declare(site.tensor(Packed), {"packed", TensorClass::Message, flat(elements)});
  passes.add({site.fusion.head, CollectivePass{.op = Collective::ReduceScatter,
                                               .from = site.tensor(Partial),
                                               .to = site.output(),
                                               .dims = {Dim::C},
                                               .parts = &site.of_head().home,
                                               .packed = site.tensor(Packed)}});
}

/// A transposed convolution runs as the backward-data kernel of the convolution that leads from its
/// output to its input. The last kernel also applies the activation of the fusion.
void forward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  const bool partial = !site.of_head().raw.dims_with(Role::Partial).empty();
  if (scatters(site))
    passes.declare(site.tensor(Partial),
                   {"partial", TensorClass::Activation, site.of_head().raw.owned(site.rank)});
  const Use raw = scatters(site) ? site.tensor(Partial) : site.output();
  Kernel product = site.kernel(transposed ? ConvolutionBackwardData : ConvolutionForward);
  const bool adds_bias = layer.bias() && !partial && !transposed;
  product.as<ConvolutionAttributes>().bias = adds_bias;
  std::vector<Use> reads{site.input(), site.of(Use::Role::ConvertedWeights)};
  if (adds_bias) reads.push_back(site.parameter(What::Bias));
  const bool bias_follows = layer.bias() && !adds_bias;
  if (!bias_follows) site.activate(product);
  passes.add({site.fusion.head,
              KernelPass{product, std::move(reads), {raw}, layer.kind == LayerKind::Convolution}});
  if (partial) land(site, passes);
  if (!bias_follows) return;
  Kernel bias = site.kernel(BiasAdd, site.home().shape());
  site.activate(bias);
  passes.add(site.run(bias, {site.output(), site.parameter(What::Bias)}, {site.output()}));
}

/// Adds the passes for the gradients of the bias and of a fused activation's input. Returns the
/// gradient of the contraction's own output, which the other gradients need.
Use backward_bias(const Site& site, PassSink& passes) {
  const LayerIndex activation = site.fusion.activation;
  const Use dy = site.output_gradient(),
            before = activation < 0 ? dy : Use{Use::Role::InputGradient, activation};
  if (site.head().bias() && site.trains(What::Bias)) {
    Kernel kernel = site.kernel(BiasGradient, site.home().shape());
    site.activate(kernel);
    std::vector<Use> reads{dy}, writes{site.parameter_gradient(What::Bias)};
    if (activation >= 0) {
      reads.push_back(site.output());
      writes.push_back(before);
    }
    passes.add(site.run(kernel, std::move(reads), std::move(writes)));
  } else if (activation >= 0) {
    Kernel kernel = site.kernel(PointwiseBackward, site.home().shape());
    kernel.attributes = site.layer(activation).as<Activation>();
    passes.add({activation, KernelPass{kernel, {site.output(), dy}, {before}}});
  }
  return before;
}

/// Returns the gradient of the terms that this rank adds to the sum over the C ranks. `gradient`:
/// the gradient of that sum. If the sum is a reduce-scatter, an all-gather, its dual, completes the
/// gradient. If it is an all-reduce, each rank already has the complete gradient.
Use gather_reduced(const Site& site, const Use& gradient, PassSink& passes) {
  if (!scatters(site)) return gradient;
  const Region raw = site.of_head().raw.owned(site.rank);
  passes.declare(site.tensor(Gathered), {"gathered", TensorClass::Message, flat(raw.elements())});
  passes.declare(site.tensor(PartialGradient), {"partial", TensorClass::ActivationGradient, raw});
  passes.add({site.fusion.head, CollectivePass{.op = Collective::AllGather,
                                               .from = gradient,
                                               .to = site.tensor(PartialGradient),
                                               .dims = {Dim::C},
                                               .parts = &site.of_head().home,
                                               .packed = site.tensor(Gathered)}});
  return site.tensor(PartialGradient);
}

/// The gradient of the input comes first, so that its transfers are under way while the gradient of
/// the weights is computed.
void backward(const Site& site, PassSink& passes) {
  const bool transposed = site.head().kind == LayerKind::TransposedConvolution;
  const Use complete = backward_bias(site, passes);
  if (!site.wants_gradient() && !site.trains(What::Weights)) {  // only the bias is trained
    if (site.trains(What::Bias))
      passes.add({site.fusion.head, GradientPass{site.parameter_gradient(What::Bias)}});
    return;
  }
  const Use raw = gather_reduced(site, complete, passes);
  const bool passes_back = site.wants_gradient(), trains = site.trains(What::Weights);
  if (passes_back) {
    passes.add(site.run(site.kernel(transposed ? ConvolutionForward : ConvolutionBackwardData),
                        {raw, site.of(Use::Role::ConvertedWeights)}, {site.input_gradient()}));
    passes.add(site.send(0, site.input_gradient()));
  }
  std::vector<Use> factors{site.input(), raw};
  if (transposed) std::swap(factors[0], factors[1]);
  if (trains)
    passes.add(site.run(site.kernel(ConvolutionBackwardFilter), std::move(factors),
                        {site.parameter_gradient(What::Weights)}));
  if (passes_back) passes.add(site.add(0, site.input_gradient()));
  if (trains) passes.add({site.fusion.head, GradientPass{site.parameter_gradient(What::Weights)}});
  if (site.head().bias() && site.trains(What::Bias))
    passes.add({site.fusion.head, GradientPass{site.parameter_gradient(What::Bias)}});
}

}  // namespace

const LayerFamily contraction{why_not, distribute, forward, backward};

}  // namespace stratplan::layers
