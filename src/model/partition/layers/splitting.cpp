#include "model/partition/layers/splitting.hpp"

#include <fmt/format.h>

#include "model/base/text.hpp"

namespace stratplan::layers {

Distribution distribution(const Shape& shape, const ProcessGrid& grid,
                          const std::array<DimList, axis_count>& by, Role rest) {
  Distribution made{.shape = shape, .grid = grid, .splits = {}, .roles = {}};
  made.roles.fill(rest);
  made.roles[static_cast<std::size_t>(Dim::R)] = Role::Redundant;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    set_roles(made, by[axis], Role::Block);
    made.splits[axis].by = by[axis];
  }
  return made;
}

Distribution split(const Shape& shape, const ProcessGrid& grid, const DimList& channels,
                   Role rest) {
  return distribution(shape, grid, {{{Dim::N}, channels, {Dim::D}, {Dim::H}, {Dim::W}}}, rest);
}

void set_roles(Distribution& distribution, const DimList& dims, Role role) {
  for (const Dim dim : dims) distribution.roles[static_cast<std::size_t>(dim)] = role;
}

std::vector<Needed> needed_inputs(const Layer& layer, const Distribution& iteration) {
  std::vector<Needed> inputs;
  for (std::size_t input = 0; input < layer.inputs.size(); ++input)
    inputs.push_back({layer.input_shape(input), iteration, iteration_windows(layer), layer.scales(),
                      layer.origin(input)[static_cast<std::size_t>(Axis::C)],
                      layer.kind == LayerKind::TransposedConvolution});
  return inputs;
}

Distribution channel_distribution(const Layer& layer, const ProcessGrid& grid,
                                  const DimList& channels) {
  Shape per_channel;
  per_channel[Axis::C] = layer.output[Axis::C];
  return distribution(per_channel, grid, {{{}, channels, {}, {}, {}}}, Role::Gathered);
}

LayerDistributions distribute_alike(const Layer& layer, const Decomposition& decomposition) {
  const ProcessGrid& grid = decomposition.grid;
  const DimList channels{Dim::F, Dim::C};
  LayerDistributions made;
  made.inputs = needed_inputs(layer, split(layer.output, grid, channels, Role::Gathered));
  made.raw = made.home = split(layer.output, grid, channels, Role::Redundant);
  return made;
}

LayerDistributions distribute_with_channels(const Layer& layer,
                                            const Decomposition& decomposition) {
  LayerDistributions made = distribute_alike(layer, decomposition);
  made.channels = channel_distribution(layer, decomposition.grid, {Dim::F, Dim::C});
  return made;
}

std::string factor_text(Dim dim, const ProcessGrid& grid) {
  return fmt::format("{}{}", dim_letters[static_cast<std::size_t>(dim)], grid.parts(dim));
}

std::optional<std::string> too_many(Dim dim, const ProcessGrid& grid, std::int64_t extent,
                                    const char* what) {
  if (grid.parts(dim) <= extent) return {};
  return fmt::format("{} cannot split {}", factor_text(dim, grid), counted(extent, what));
}

std::optional<std::string> why_not_alike(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  switch (dim) {
    case Dim::N: return too_many(dim, grid, layer.output[Axis::N], "sample");
    case Dim::F:
    case Dim::C: return too_many(dim, grid, layer.output[Axis::C], "channel");
    case Dim::D: return too_many(dim, grid, layer.output[Axis::D], "output position");
    case Dim::H: return too_many(dim, grid, layer.output[Axis::H], "output position");
    case Dim::W: return too_many(dim, grid, layer.output[Axis::W], "output position");
    case Dim::R: break;
  }
  return {};
}

std::optional<std::string> why_not_but_channels(const Layer& layer, Dim dim,
                                                const ProcessGrid& grid, const char* reason) {
  if (dim != Dim::F && dim != Dim::C) return why_not_alike(layer, dim, grid);
  return fmt::format("{}, which {} would split", reason, factor_text(dim, grid));
}

}  // namespace stratplan::layers
