#include "model/partition/decomposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "model/base/assert.hpp"

namespace stratplan {

std::string Decomposition::text() const {
  return grid.text() +
         (landing == Landing::AllReduce && grid.parts(Dim::C) > 1 ? " all-reduce" : "");
}

Decomposition Decomposition::parse(std::string_view text) {
  constexpr std::string_view all_reduce = " all-reduce";
  if (text.ends_with(all_reduce))
    return {ProcessGrid::parse(text.substr(0, text.size() - all_reduce.size())),
            Landing::AllReduce};
  return {ProcessGrid::parse(text), Landing::ReduceScatter};
}

namespace {

constexpr std::array<Dim, 3> spatial_dims{Dim::D, Dim::H, Dim::W};

Dim dim_of(Axis axis) { return spatial_dims[static_cast<std::size_t>(spatial_index(axis))]; }

/// A distribution whose axes are split by the dimensions given per axis; the others get `rest`, R is Redundant.
Distribution distribution(const Shape& shape, const ProcessGrid& grid,
                          std::array<DimList, axis_count> by, Role rest) {
  Distribution made{.shape = shape, .grid = grid, .splits = {}, .roles = {}};
  made.roles.fill(rest);
  made.roles[static_cast<std::size_t>(Dim::R)] = Role::Redundant;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    for (const Dim dim : by[axis]) made.roles[static_cast<std::size_t>(dim)] = Role::Block;
    made.splits[axis].by = by[axis];
  }
  return made;
}

void set_roles(Distribution& distribution, const DimList& dims, Role role) {
  for (const Dim dim : dims) distribution.roles[static_cast<std::size_t>(dim)] = role;
}

/// Whether the layer's own sum runs over D, H and W.
bool sums_over_space(const Layer& layer) { return layer.kind == LayerKind::GlobalAveragePool; }

/// Extents over which the layer's work is split: the output's, with the input's channels in a contraction, the input's where space is summed over.
Shape iteration_extents(const Layer& layer) {
  Shape extents = sums_over_space(layer) ? layer.input : layer.output;
  if (layer.kind != LayerKind::Concat) extents[Axis::C] = layer.input[Axis::C];
  return extents;
}

/// The dimensions that split the channels of the layer's output once the sum over C has landed.
DimList landed_channels(const Layer& layer, Landing landing) {
  if (layer.mixes_channels() && landing == Landing::AllReduce) return {Dim::F};
  return {Dim::F, Dim::C};
}

}  // namespace

std::array<Window, 3> iteration_windows(const Layer& layer) {
  if (layer.kind != LayerKind::FullyConnected) return layer.windows;
  std::array<Window, 3> windows;
  for (const Axis axis : spatial_axes)
    windows[static_cast<std::size_t>(spatial_index(axis))].kernel = layer.input[axis];
  return windows;
}

namespace {

/// Weights of a transposed convolution have the input channels outside, the filters inside. Where there are groups, F and C both split them.
Distribution weights_distribution(const Layer& layer, const ProcessGrid& grid) {
  const Shape shape = layer.weights();
  if (!layer.mixes_channels()) {
    Distribution grouped =
        distribution(shape, grid, {{{Dim::F, Dim::C}, {}, {}, {}, {}}}, Role::Gathered);
    grouped.splits[static_cast<std::size_t>(Axis::N)].quantum = shape[Axis::N] / layer.groups;
    return grouped;
  }
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  const Dim outer = transposed ? Dim::C : Dim::F, inner = transposed ? Dim::F : Dim::C;
  return distribution(shape, grid, {{{outer}, {inner}, {}, {}, {}}}, Role::Gathered);
}

}  // namespace

LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition) {
  const ProcessGrid& grid = decomposition.grid;
  const bool mixes = layer.mixes_channels();
  const DimList channels = landed_channels(layer, decomposition.landing);
  const DimList read_channels = mixes ? DimList{Dim::C} : DimList{Dim::F, Dim::C};
  const DimList space{Dim::D, Dim::H, Dim::W};
  const auto split = [&](const Shape& shape, const DimList& by_channel, Role rest) {
    return distribution(shape, grid, {{{Dim::N}, by_channel, {Dim::D}, {Dim::H}, {Dim::W}}}, rest);
  };

  LayerDistributions made;
  Distribution iteration = split(iteration_extents(layer), read_channels, Role::Gathered);
  if (layer.contracts_in_groups())
    iteration.splits[static_cast<std::size_t>(Axis::C)].quantum =
        layer.input[Axis::C] / layer.groups;
  for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
    const std::int64_t first_channel = layer.origin(input)[static_cast<std::size_t>(Axis::C)];
    const bool transposed = layer.kind == LayerKind::TransposedConvolution;
    made.inputs.push_back({layer.input_shape(input), iteration, iteration_windows(layer),
                           layer.scales, first_channel, transposed});
  }
  if (sums_over_space(layer)) {
    made.raw =
        distribution(layer.output, grid, {{{Dim::N}, channels, {}, {}, {}}}, Role::Redundant);
    made.home = made.raw;
    set_roles(made.raw, space, Role::Partial);
  } else {
    made.raw = split(layer.output, mixes ? DimList{Dim::F} : channels, Role::Redundant);
    if (mixes) set_roles(made.raw, {Dim::C}, Role::Partial);
    made.home = split(layer.output, channels, Role::Redundant);
  }
  if (is_contraction(layer.kind)) made.weights = weights_distribution(layer, grid);
  if (layer.bias || has_statistics(layer.kind) || layer.kind == LayerKind::PReLU) {
    Shape per_channel;
    per_channel[Axis::C] = layer.output[Axis::C];
    made.channels = distribution(per_channel, grid, {{{}, channels, {}, {}, {}}}, Role::Gathered);
    // After an all-reduce every C rank holds the complete gradient of the output, hence of the bias.
    if (mixes && decomposition.landing == Landing::AllReduce)
      set_roles(*made.channels, {Dim::C}, Role::Redundant);
  }
  return made;
}

namespace {

struct Illegal {
  Dim dim;
  std::string reason;
};

const char* reader_of_channels(LayerKind kind) {
  switch (kind) {
    case LayerKind::LocalResponseNorm:
      return "the sum of squares runs across neighbouring channels";
    case LayerKind::DiceLoss: return "a label stands for one of all channels";
    default: return "the softmax runs over all channels";
  }
}

/// F and C, in this order, split whole groups. Blocks of filters are cut as everywhere, so that what stands behind inherits them: they must end where
/// groups do, and then so do the blocks of input channels.
std::optional<std::string> why_not_groups(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  const std::int64_t parts = std::int64_t{grid.parts(Dim::F)} *
                             (dim == Dim::C ? grid.parts(Dim::C) : 1),
                     filters = layer.filters / layer.groups;
  const std::string factor =
      fmt::format("{}{}", dim_letters[static_cast<std::size_t>(dim)], grid.parts(dim));
  if (parts > layer.groups)
    return fmt::format("{} splits {} groups of channels", factor, layer.groups);
  if (filters == 1 || layer.groups % parts == 0) return {};
  return fmt::format("{} cuts {} groups of {} filters elsewhere than between two groups", factor,
                     layer.groups, filters);
}

/// Why the layer cannot be split along `dim` at all, or not into that many parts; nothing if it can.
std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  const int parts = grid.parts(dim);
  if (parts == 1 || dim == Dim::R) return {};
  const std::string factor = fmt::format("{}{}", dim_letters[static_cast<std::size_t>(dim)], parts);
  const auto too_many = [&](std::int64_t extent, const char* what) -> std::optional<std::string> {
    if (parts <= extent) return {};
    return fmt::format("{} splits {} {}", factor, extent, what);
  };
  const Shape extents = iteration_extents(layer);
  if (dim == Dim::N) return too_many(extents[Axis::N], "samples");
  if (joins_channels(layer.kind) && (dim == Dim::C || dim == Dim::F))
    return fmt::format("{}, which {} would split", reader_of_channels(layer.kind), factor);
  if (layer.contracts_in_groups() && (dim == Dim::F || dim == Dim::C))
    return why_not_groups(layer, dim, grid);
  if (dim == Dim::F && is_contraction(layer.kind)) return too_many(layer.filters, "filters");
  if (dim == Dim::C || dim == Dim::F) return too_many(extents[Axis::C], "channels");
  if (layer.kind == LayerKind::FullyConnected)
    return "the kernel of a fully connected layer is the whole spatial extent, which " + factor +
           " would split";
  const Axis axis = dim == Dim::D ? Axis::D : dim == Dim::H ? Axis::H : Axis::W;
  return too_many(extents[axis], sums_over_space(layer) ? "input positions" : "output positions");
}

/// Rank-independent checks passed: does every rank get work?
std::optional<Illegal> first_empty(const Layer& layer, const Decomposition& decomposition) {
  const LayerDistributions made = distribute(layer, decomposition);
  const auto smallest_empty = [&](const Distribution& tensor, Axis axis) {
    // Blocks of blocks: the last rank along every dimension has the smallest of each.
    std::array<int, dim_count> last{};
    for (const Dim dim : tensor.split(axis).by)
      last[static_cast<std::size_t>(dim)] = tensor.grid.parts(dim) - 1;
    return tensor.owned(axis, last).empty();
  };
  for (const Axis axis : all_axes) {
    const DimList& by = made.home.split(axis).by;
    if (!by.empty() && smallest_empty(made.home, axis))
      return Illegal{
          by.back(),
          fmt::format("{} leaves ranks without {} of its {}", decomposition.text(),
                      axis_names[static_cast<std::size_t>(axis)], made.home.shape[axis])};
  }
  for (const Axis axis : spatial_axes) {
    const Needed& input = made.inputs.front();
    std::array<int, dim_count> at{};
    int& index = at[static_cast<std::size_t>(dim_of(axis))];
    const int parts = decomposition.grid.parts(dim_of(axis));
    if (parts == 1) continue;  // as undivided
    for (index = 0; index < parts; ++index)
      if (input.region(axis, at).empty())
        return Illegal{dim_of(axis),
                       fmt::format("{} gives a rank output positions that read nothing but padding",
                                   decomposition.text())};
  }
  return {};
}

/// Blocks of channels must be whole groups: the statistics of one that is cut would need a sum over the ranks of its own.
std::optional<Illegal> first_cut_group(const Layer& layer, const Decomposition& decomposition) {
  const ProcessGrid& grid = decomposition.grid;
  const std::int64_t group = layer.input[Axis::C] / layer.groups;
  const Distribution home = distribute(layer, decomposition).home;
  std::array<int, dim_count> at{};
  int &f = at[static_cast<std::size_t>(Dim::F)], &c = at[static_cast<std::size_t>(Dim::C)];
  for (f = 0; f < grid.parts(Dim::F); ++f)
    for (c = 0; c < grid.parts(Dim::C); ++c)
      if (home.owned(Axis::C, grid.rank_at(at)).begin % group != 0)
        return Illegal{grid.parts(Dim::C) > 1 ? Dim::C : Dim::F,
                       fmt::format("{} cuts groups of {} channels", decomposition.text(), group)};
  return {};
}

std::optional<Illegal> first_illegal(const Layer& layer, const Decomposition& decomposition) {
  SP_ASSERT(layer.kind != LayerKind::Input, "layer {}", layer.name);
  for (const Dim dim : all_dims)
    if (auto reason = why_not(layer, dim, decomposition.grid))
      return Illegal{dim, std::move(*reason)};
  if (auto empty = first_empty(layer, decomposition)) return empty;
  if (layer.kind == LayerKind::GroupNorm) return first_cut_group(layer, decomposition);
  return {};
}

}  // namespace

std::optional<Rejection> check(const Layer& layer, const Decomposition& decomposition) {
  if (auto illegal = first_illegal(layer, decomposition))
    return Rejection{fmt::format("layer {}: {}", layer.name, illegal->reason)};
  return {};
}

Decomposition inherited(const Layer& layer, const Decomposition& decomposition) {
  if (sums_over_space(layer))
    return {decomposition.grid.relabelled({Dim::D, Dim::H, Dim::W}, Dim::R), decomposition.landing};
  if (layer.mixes_channels() && decomposition.landing == Landing::AllReduce)
    return {decomposition.grid.relabelled({Dim::C}, Dim::R), Landing::ReduceScatter};
  return {decomposition.grid, Landing::ReduceScatter};
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
