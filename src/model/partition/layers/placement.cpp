// Layers that copy their inputs to places in their output: concatenation and padding. Forward, a
// constant fills the elements that no input covers. Backward, each input takes the gradient at its
// place in the output. A rank copies nothing of an input that does not overlap the rank's block.
//
// A padding that wraps around reads its input beyond both ends, so it copies all it reads;
// transfers bring the elements of the other end. A padding that repeats or reflects the ends
// selects elements as an upsampling does.
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

void forward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  if (layer.resamples())
    return passes.add(
        site.run(site.kernel(KernelKind::UpsampleForward), {site.input()}, {site.output()}));
  const Region home = site.home();
  std::int64_t placed = 0;
  for (std::size_t input = 0; input < layer.inputs.size(); ++input)
    placed += site.needed(input).elements();
  if (placed < home.elements()) {
    Kernel fill = site.kernel(KernelKind::Fill, home.shape());
    if (layer.kind == LayerKind::Pad) fill.as<FillAttributes>().value = layer.as<PadLayer>().value;
    passes.add(site.run(std::move(fill), {}, {site.output()}));
  }
  for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
    const Region region = site.needed(input);
    if (region.empty()) continue;
    passes.add(site.run(copy_kernel(region, region, home, moved(region, layer.origin(input)),
                                    site.execution.precision.activations),
                        {site.input(input)}, {site.output()}));
  }
}

void backward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  if (layer.resamples())
    return site.pass_back(passes, site.kernel(KernelKind::UpsampleBackward),
                          {site.output_gradient()});
  for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
    if (!site.wants_gradient(input)) continue;
    const Region region = site.needed(input);
    const Use dx = site.input_gradient(input);
    if (!region.empty())
      passes.add(site.run(copy_kernel(site.home(), moved(region, layer.origin(input)), region,
                                      region, site.execution.precision.activations),
                          {site.output_gradient()}, {dx}));
    passes.add(site.send(input, dx));
    passes.add(site.add(input, dx));
  }
}

}  // namespace

const LayerFamily placement{why_not_alike, distribute_alike, forward, backward};

}  // namespace stratplan::layers
