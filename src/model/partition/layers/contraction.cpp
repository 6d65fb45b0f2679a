// Contractions: convolutions, transposed ones, fully connected layers. A fully connected layer is a
// convolution whose kernel is the whole image (iteration_windows()).
#include "model/partition/layer_family.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;
using What = ParameterSlice::What;

enum Tensors { Partial, Packed, Gathered, PartialGradient };

/// The sum over the C ranks lands as a reduce-scatter, each with channels of its own.
bool scatters(const Site& site) {
  return !site.of_head().raw.dims_with(Role::Partial).empty() &&
         site.decomposition.landing == Landing::ReduceScatter;
}

/// Each rank has one term of each output: sums of those of the C ranks.
void land(const Site& site, PassSink& passes) {
  if (!scatters(site))
    return passes.add(
        {site.fusion.head,
         CollectivePass{.from = site.output(), .to = site.output(), .dims = {Dim::C}}});
  const std::int64_t elements = site.of_head().raw.owned(site.rank).elements();
  passes.declare(site.tensor(Packed),
                 {site.head().name + ".packed", TensorClass::Message, flat(elements)});
  passes.add({site.fusion.head, CollectivePass{.op = Collective::ReduceScatter,
                                               .from = site.tensor(Partial),
                                               .to = site.output(),
                                               .dims = {Dim::C},
                                               .parts = &site.of_head().home,
                                               .packed = site.tensor(Packed)}});
}

/// A transposed convolution is the gradient of the convolution that leads from its output to its
/// input. The last kernel does what is fused behind.
void forward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  const bool partial = !site.of_head().raw.dims_with(Role::Partial).empty();
  if (scatters(site))
    passes.declare(site.tensor(Partial), {layer.name + ".partial", TensorClass::Activation,
                                          site.of_head().raw.owned(site.rank)});
  const Use raw = scatters(site) ? site.tensor(Partial) : site.output();
  Kernel product = site.kernel(transposed ? ConvolutionBackwardData : ConvolutionForward);
  product.bias = layer.bias && !partial && !transposed;
  std::vector<Use> reads{site.input(), site.of(Use::Role::ConvertedWeights)};
  if (product.bias) reads.push_back(site.parameter(What::Bias));
  const bool bias_follows = layer.bias && !product.bias;
  if (!bias_follows) site.activate(product);
  passes.add({site.fusion.head,
              KernelPass{product, std::move(reads), {raw}, layer.kind == LayerKind::Convolution}});
  if (partial) land(site, passes);
  if (!bias_follows) return;
  Kernel bias = site.kernel(BiasAdd, site.home().shape());
  site.activate(bias);
  passes.add(site.run(bias, {site.output(), site.parameter(What::Bias)}, {site.output()}));
}

/// The gradient of the bias, and with it that of what is in front of the activation, from which the
/// other gradients go on.
Use backward_bias(const Site& site, PassSink& passes) {
  const LayerIndex activation = site.fusion.activation;
  const Use dy = site.output_gradient(),
            before = activation < 0 ? dy : Use{Use::Role::InputGradient, activation};
  if (site.head().bias) {
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
    kernel.pointwise = site.layer(activation).pointwise;
    passes.add({activation, KernelPass{kernel, {site.output(), dy}, {before}}});
  }
  return before;
}

/// The gradient of each rank's terms from that of the landed sum: the dual of reduce-scatter is
/// all-gather; after an all-reduce it is complete.
Use gather_landed(const Site& site, const Use& gradient, PassSink& passes) {
  if (!scatters(site)) return gradient;
  const Region raw = site.of_head().raw.owned(site.rank);
  const std::string name = "d " + site.head().name;
  passes.declare(site.tensor(Gathered),
                 {name + ".gathered", TensorClass::Message, flat(raw.elements())});
  passes.declare(site.tensor(PartialGradient),
                 {name + ".partial", TensorClass::ActivationGradient, raw});
  passes.add({site.fusion.head, CollectivePass{.op = Collective::AllGather,
                                               .from = gradient,
                                               .to = site.tensor(PartialGradient),
                                               .dims = {Dim::C},
                                               .parts = &site.of_head().home,
                                               .packed = site.tensor(Gathered)}});
  return site.tensor(PartialGradient);
}

/// Backward data first: its transfers are under way while backward filter runs.
void backward(const Site& site, PassSink& passes) {
  const bool transposed = site.head().kind == LayerKind::TransposedConvolution;
  const Use raw = gather_landed(site, backward_bias(site, passes), passes);
  if (!site.reads_data()) {
    passes.add(site.run(site.kernel(transposed ? ConvolutionForward : ConvolutionBackwardData),
                        {raw, site.of(Use::Role::ConvertedWeights)}, {site.input_gradient()}));
    passes.add(site.send(0, site.input_gradient()));
  }
  std::vector<Use> factors{site.input(), raw};
  if (transposed) std::swap(factors[0], factors[1]);
  passes.add(site.run(site.kernel(ConvolutionBackwardFilter), std::move(factors),
                      {site.parameter_gradient(What::Weights)}));
  if (!site.reads_data()) passes.add(site.add(0, site.input_gradient()));
  passes.add({site.fusion.head, GradientPass{site.parameter_gradient(What::Weights)}});
  if (site.head().bias)
    passes.add({site.fusion.head, GradientPass{site.parameter_gradient(What::Bias)}});
}

}  // namespace

const LayerFamily contraction{forward, backward};

}  // namespace stratplan::layers
