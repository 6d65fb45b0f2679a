// The pooling family: pooling over windows, reductions of whole axes (pooling over all positions
// among them), and upsampling.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

bool is_greatest(const Layer& layer) {
  return layer.kind == LayerKind::Reduce && layer.as<ReduceLayer>().function == Reduction::Max;
}

/// The dimensions that split an axis.
DimList dims_of(Axis axis) {
  switch (axis) {
    case Axis::N: return {Dim::N};
    case Axis::C: return {Dim::F, Dim::C};
    case Axis::D: return {Dim::D};
    case Axis::H: return {Dim::H};
    case Axis::W: return {Dim::W};
  }
  return {};
}

/// A reduced axis has one output element, so its dimensions split the input.
std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  for (const Axis axis : all_axes) {
    if (!layer.reduces(axis) || std::ranges::count(dims_of(axis), dim) == 0) continue;
    if (is_greatest(layer))
      return fmt::format("the greatest of all channels is taken, which {} would split",
                         factor_text(dim, grid));
    return too_many(dim, grid, layer.input[axis],
                    axis == Axis::C ? "input channel" : "input position");
  }
  return why_not_alike(layer, dim, grid);
}

bool reduces_any(const Layer& layer) {
  return layer.kind == LayerKind::GlobalAveragePool || layer.kind == LayerKind::Reduce;
}

LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  if (!reduces_any(layer)) return distribute_alike(layer, decomposition);
  const ProcessGrid& grid = decomposition.grid;
  LayerDistributions made;
  made.inputs = needed_inputs(layer, split(layer.input, grid, dims_of(Axis::C), Role::Gathered));
  std::array<DimList, axis_count> by;
  for (const Axis axis : all_axes)
    if (!layer.reduces(axis)) by[static_cast<std::size_t>(axis)] = dims_of(axis);
  made.raw = made.home = distribution(layer.output, grid, by, Role::Redundant);
  for (const Axis axis : all_axes)
    if (layer.reduces(axis)) set_roles(made.raw, dims_of(axis), Role::Partial);
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
    case LayerKind::Reduce: return {ReduceForward, ReduceBackward};
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
  if (is_greatest(site.head())) reads = {site.input(), site.output_gradient()};
  if (kind == LayerKind::MaxPool) reads.push_back(site.tensor(Places));
  site.pass_back(passes, site.kernel(kernels_of(kind).backward), std::move(reads));
}

}  // namespace

const LayerFamily pooling{why_not, distribute, forward, backward};

}  // namespace stratplan::layers
