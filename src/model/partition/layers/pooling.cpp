// The pooling family: pooling over windows, pooling over all positions, and upsampling.
#include "model/base/assert.hpp"
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

/// A global pooling has a single output position, so D, H and W split its input positions.
std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  if (layer.kind != LayerKind::GlobalAveragePool) return why_not_alike(layer, dim, grid);
  switch (dim) {
    case Dim::D: return too_many(dim, grid, layer.input[Axis::D], "input position");
    case Dim::H: return too_many(dim, grid, layer.input[Axis::H], "input position");
    case Dim::W: return too_many(dim, grid, layer.input[Axis::W], "input position");
    default: return why_not_alike(layer, dim, grid);
  }
}

LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  if (layer.kind != LayerKind::GlobalAveragePool) return distribute_alike(layer, decomposition);
  const ProcessGrid& grid = decomposition.grid;
  const DimList channels{Dim::F, Dim::C};
  LayerDistributions made;
  made.inputs = needed_inputs(layer, split(layer.input, grid, channels, Role::Gathered));
  made.raw = made.home =
      distribution(layer.output, grid, {{{Dim::N}, channels, {}, {}, {}}}, Role::Redundant);
  set_roles(made.raw, {Dim::D, Dim::H, Dim::W}, Role::Partial);
  return made;
}

enum Tensors { Places };  ///< the places of the maxima

struct Kernels {
  KernelKind forward, backward;
};
Kernels kernels_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::MaxPool: return {MaxPoolForward, MaxPoolBackward};
    case LayerKind::AveragePool: return {AveragePoolForward, AveragePoolBackward};
    case LayerKind::GlobalAveragePool: return {SpatialMeanForward, SpatialMeanBackward};
    case LayerKind::Upsample: return {UpsampleForward, UpsampleBackward};
    default: break;
  }
  SP_ASSERT(false, "the pooling family has no kernels for the kind {}", name_of(kind));
  return {};
}

void forward(const Site& site, PassSink& passes) {
  const Layer& layer = site.head();
  std::vector<Use> writes{site.output()};
  if (layer.kind == LayerKind::MaxPool) {
    passes.declare(site.output());
    passes.declare(site.tensor(Places),
                   {"index", TensorClass::Activation, site.home(), DataType::I32});
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

const LayerFamily pooling{why_not, distribute, forward, backward};

}  // namespace stratplan::layers
