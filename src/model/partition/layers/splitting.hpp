#pragma once
// Functions that several families share: distributions of tensors, and reasons against a split.
#include <optional>
#include <string>

#include "model/partition/layers/layer_family.hpp"

namespace stratplan::layers {

/// Returns the distribution of a tensor of this shape. `by`: per axis, the dimensions that split
/// it. R has the role Redundant. Other dimensions that split no axis have the role `rest`.
Distribution distribution(const Shape& shape, const ProcessGrid& grid,
                          const std::array<DimList, axis_count>& by, Role rest);
/// Like distribution(), with samples split by N, channels by `channels`, and positions by D, H, W.
Distribution split(const Shape& shape, const ProcessGrid& grid, const DimList& channels, Role rest);
void set_roles(Distribution& distribution, const DimList& dims, Role role);

/// Returns, for each input, the regions that the ranks of a layer read through its windows or
/// scales. `iteration`: the distribution of the layer's iteration space.
std::vector<Needed> needed_inputs(const Layer& layer, const Distribution& iteration);
/// Returns the distribution of a vector with one element per output channel.
Distribution channel_distribution(const Layer& layer, const ProcessGrid& grid,
                                  const DimList& channels);

/// Returns the distributions of a layer whose iteration space is its output, and whose output needs
/// no sum over ranks.
LayerDistributions distribute_alike(const Layer& layer, const Decomposition& decomposition);
/// Like distribute_alike(), for layers that also have parameters per channel.
LayerDistributions distribute_with_channels(const Layer& layer, const Decomposition& decomposition);

/// Returns a dimension with its number of parts, such as "H4".
std::string factor_text(Dim dim, const ProcessGrid& grid);
/// Returns a reason against the split if the grid has more than `extent` parts along `dim`;
/// otherwise nothing. `what`: the noun for one element of the extent, such as "channel".
std::optional<std::string> too_many(Dim dim, const ProcessGrid& grid, std::int64_t extent,
                                    const char* what);
/// LayerFamily::why_not for layers that can be split along every dimension, into at most as many
/// parts as the output has samples, channels or positions.
std::optional<std::string> why_not_alike(const Layer& layer, Dim dim, const ProcessGrid& grid);
/// LayerFamily::why_not for layers that read all channels of a position at once, and so cannot be
/// split along F or C. `reason`: why they read all channels.
std::optional<std::string> why_not_but_channels(const Layer& layer, Dim dim,
                                                const ProcessGrid& grid, const char* reason);

}  // namespace stratplan::layers
