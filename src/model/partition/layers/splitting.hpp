#pragma once
// What families have in common: how tensors are split, and what speaks against a split.
#include <optional>
#include <string>

#include "model/partition/layers/layer_family.hpp"

namespace stratplan::layers {

/// A distribution whose axes are split by the dimensions given per axis; the others have the role
/// `rest`, R is Redundant.
Distribution distribution(const Shape& shape, const ProcessGrid& grid,
                          const std::array<DimList, axis_count>& by, Role rest);
/// Samples by N, positions by D, H and W, channels by `channels`.
Distribution split(const Shape& shape, const ProcessGrid& grid, const DimList& channels, Role rest);
void set_roles(Distribution& distribution, const DimList& dims, Role role);

/// All inputs are read through the layer's windows or scales, from these blocks of its work.
std::vector<Needed> needed_inputs(const Layer& layer, const Distribution& iteration);
/// Of a vector with an element for each output channel.
Distribution channel_distribution(const Layer& layer, const ProcessGrid& grid,
                                  const DimList& channels);

/// Work over the output's elements, which lie as they are computed.
LayerDistributions distribute_alike(const Layer& layer, const Decomposition& decomposition);
/// The same, with parameters for each channel.
LayerDistributions distribute_with_channels(const Layer& layer, const Decomposition& decomposition);

/// "H4"
std::string factor_text(Dim dim, const ProcessGrid& grid);
/// Nothing if there are as many as parts.
std::optional<std::string> too_many(Dim dim, const ProcessGrid& grid, std::int64_t extent,
                                    const char* what);
/// Every dimension may be split, into at most as many parts as the output has samples, channels,
/// positions.
std::optional<std::string> why_not_alike(const Layer& layer, Dim dim, const ProcessGrid& grid);
/// The same but for channels, of which all are read at once, for this reason.
std::optional<std::string> why_not_but_channels(const Layer& layer, Dim dim,
                                                const ProcessGrid& grid, const char* reason);

}  // namespace stratplan::layers
