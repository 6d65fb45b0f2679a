// Poolings over windows and over all positions, and enlargements.
#include "model/partition/layer_family.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

enum Tensors { Places };  ///< of the maxima

struct Kernels {
  KernelKind forward, backward;
};
Kernels kernels_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::MaxPool: return {MaxPoolForward, MaxPoolBackward};
    case LayerKind::AveragePool: return {AveragePoolForward, AveragePoolBackward};
    case LayerKind::GlobalAveragePool: return {SpatialMeanForward, SpatialMeanBackward};
    default: return {UpsampleForward, UpsampleBackward};
  }
}

void forward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  std::vector<Use> writes{site.output()};
  if (layer.kind == LayerKind::MaxPool) {
    passes.declare(site.output());
    passes.declare(site.tensor(Places),
                   {layer.name + ".index", TensorClass::Activation, site.home(), DataType::I32});
    writes.push_back(site.tensor(Places));
  }
  passes.add(
      site.run(site.kernel(kernels_of(layer.kind).forward), {site.input()}, std::move(writes)));
  const DimList partial = site.of_head().raw.dims_with(Role::Partial);
  if (!partial.empty())
    passes.add({site.fusion.head,
                CollectivePass{.from = site.output(), .to = site.output(), .dims = partial}});
}

void backward(const Site& site, PassSink& passes) {
  const LayerKind kind = site.head().kind;
  std::vector<Use> reads{site.output_gradient()};
  if (kind == LayerKind::MaxPool) reads.push_back(site.tensor(Places));
  site.pass_back(passes, site.kernel(kernels_of(kind).backward), std::move(reads));
}

}  // namespace

const LayerFamily pooling{forward, backward};

}  // namespace stratplan::layers
