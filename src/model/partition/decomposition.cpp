#include "model/partition/decomposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "model/base/assert.hpp"
#include "model/partition/layers/layer_family.hpp"

namespace stratplan {

std::string Decomposition::text() const {
  return grid.text() +
         (output_layout == OutputLayout::AllReduce && grid.parts(Dim::C) > 1 ? " all-reduce" : "") +
         ranks.text();
}

Decomposition Decomposition::parse(std::string_view text) {
  constexpr std::string_view all_reduce = " all-reduce", on = " on ";
  Decomposition parsed;
  const std::size_t place = text.find(on);
  std::string_view rest = text.substr(0, place);
  if (rest.ends_with(all_reduce)) {
    rest.remove_suffix(all_reduce.size());
    parsed.output_layout = OutputLayout::AllReduce;
  }
  parsed.grid = ProcessGrid::parse(rest);
  if (place == std::string_view::npos) return parsed;
  parsed.ranks = Ranks::parse(text.substr(place + on.size()));
  if (parsed.ranks.count() != parsed.grid.ranks())
    throw std::invalid_argument(fmt::format("\"{}\": expected {} ranks after \"on\", found {}",
                                            text, parsed.grid.ranks(), parsed.ranks.count()));
  return parsed;
}

namespace {

constexpr std::array<Dim, 3> spatial_dims{Dim::D, Dim::H, Dim::W};

Dim dim_of(Axis axis) { return spatial_dims[static_cast<std::size_t>(spatial_index(axis))]; }

/// The dimensions that split axes which the layer reduces to one element.
DimList reduced_dims(const Layer& layer) {
  DimList dims;
  for (const Axis axis : spatial_axes)
    if (layer.reduces(axis)) dims.push_back(dim_of(axis));
  if (layer.reduces(Axis::C)) {
    dims.push_back(Dim::F);
    dims.push_back(Dim::C);
  }
  return dims;
}

}  // namespace

std::array<Window, 3> iteration_windows(const Layer& layer) {
  std::array<Window, 3> windows;
  if (const auto* pad = std::get_if<PadLayer>(&layer.attributes);
      pad && pad->mode != PaddingMode::Constant)
    return windows;  // Layer::scales() says what is read
  if (layer.kind != LayerKind::FullyConnected) return layer.windows();
  for (const Axis axis : spatial_axes)
    windows[static_cast<std::size_t>(spatial_index(axis))].kernel = layer.input[axis];
  return windows;
}

LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  LayerDistributions made = family_of(layer.kind).distribute(layer, decomposition);
  for (Needed& input : made.inputs) input.iteration.ranks = decomposition.ranks;
  made.raw.ranks = made.home.ranks = decomposition.ranks;
  if (made.weights) made.weights->ranks = decomposition.ranks;
  if (made.channels) made.channels->ranks = decomposition.ranks;
  return made;
}

namespace {

/// Returns a dimension along which some rank gets no work; nothing if every rank gets work.
/// Requires that the family's why_not() accepts all dimensions.
std::optional<Illegal> first_empty(const Layer& layer, const Decomposition& decomposition) {
  const LayerDistributions made = distribute(layer, decomposition);
  const auto smallest_empty = [&](const Distribution& tensor, Axis axis) {
    // The last index along each dimension has the smallest block, also for blocks of blocks.
    std::array<int, dim_count> last{};
    for (const Dim dim : tensor.split(axis).by)
      last[static_cast<std::size_t>(dim)] = tensor.grid.parts(dim) - 1;
    return tensor.owned(axis, last).empty();
  };
  for (const Axis axis : all_axes) {
    // Along a reduced axis, the input is divided instead of the output.
    const Distribution& divided = layer.reduces(axis) ? made.inputs.front().iteration : made.home;
    const DimList& by = divided.split(axis).by;
    if (!by.empty() && smallest_empty(divided, axis))
      return Illegal{by.back(),
                     fmt::format("{} leaves some ranks without work: axis {} has {} elements",
                                 decomposition.text(), axis_names[static_cast<std::size_t>(axis)],
                                 divided.shape[axis])};
  }
  for (const Axis axis : spatial_axes) {
    const Needed& input = made.inputs.front();
    std::array<int, dim_count> at{};
    int& index = at[static_cast<std::size_t>(dim_of(axis))];
    const int parts = decomposition.grid.parts(dim_of(axis));
    if (parts == 1) continue;
    for (index = 0; index < parts; ++index)
      if (input.region(axis, at).empty())
        return Illegal{dim_of(axis),
                       fmt::format("{} gives a rank output positions that read nothing but padding",
                                   decomposition.text())};
  }
  return {};
}

std::optional<Illegal> first_illegal(const Layer& layer, const Decomposition& decomposition) {
  SP_ASSERT(layer.kind != LayerKind::Input, "layer {} is an input, which has no decomposition",
            layer.name);
  const LayerFamily& family = family_of(layer.kind);
  const ProcessGrid& grid = decomposition.grid;
  for (const Dim dim : all_dims) {
    if (grid.parts(dim) == 1 || dim == Dim::R) continue;
    if (auto reason = family.why_not(layer, dim, grid)) return Illegal{dim, std::move(*reason)};
  }
  if (auto empty = first_empty(layer, decomposition)) return empty;
  return family.first_cut ? family.first_cut(layer, decomposition) : std::nullopt;
}

}  // namespace

std::optional<Rejection> check(const Layer& layer, const Decomposition& decomposition) {
  if (auto illegal = first_illegal(layer, decomposition))
    return Rejection{fmt::format("layer {}: {}", layer.name, illegal->reason)};
  return {};
}

Decomposition inherited(const Layer& layer, const Decomposition& decomposition) {
  if (const DimList reduced = reduced_dims(layer); !reduced.empty())
    return {decomposition.grid.relabelled(reduced, Dim::R), decomposition.output_layout,
            decomposition.ranks};
  if (layer.mixes_channels() && decomposition.output_layout == OutputLayout::AllReduce)
    return {decomposition.grid.relabelled({Dim::C}, Dim::R), OutputLayout::ReduceScatter,
            decomposition.ranks};
  return {decomposition.grid, OutputLayout::ReduceScatter, decomposition.ranks};
}

Nearest nearest_legal(const Layer& layer, const Decomposition& wanted) {
  Nearest nearest{wanted, ""};
  while (const auto illegal = first_illegal(layer, nearest.decomposition)) {
    nearest.decomposition.grid = nearest.decomposition.grid.relabelled({illegal->dim}, Dim::R);
    nearest.reason += (nearest.reason.empty() ? "" : "; ") + illegal->reason;
  }
  return nearest;
}

}  // namespace stratplan
