#include "interop/onnx/view.hpp"

#include <algorithm>

namespace stratplan::interop {
namespace {

std::int64_t product(const Factors& factors) {
  std::int64_t extent = 1;
  for (const Factor& factor : factors) extent *= factor.extent;
  return extent;
}

Factors without_ones(Factors factors) {
  std::erase_if(factors, [](const Factor& factor) { return factor.extent == 1; });
  return factors;
}

using Blocks = std::array<std::int64_t, 3>;

/// The factors of the channel axis that a block's positions have in a deep tensor of these many
/// channels: along D, H and W.
std::array<Factor, 3> block_factors(const Blocks& block, std::int64_t channels, bool crd) {
  const std::int64_t innermost = crd ? 1 : channels;
  return {Factor{Axis::C, block[0], innermost * block[1] * block[2]},
          Factor{Axis::C, block[1], innermost * block[2]}, Factor{Axis::C, block[2], innermost}};
}

std::optional<RearrangingLayer> shuffle(const Shape& shape, const Factors& channels,
                                        const std::array<Factors, 3>& positions) {
  for (const Axis axis : spatial_axes)
    if (const std::int64_t extent = shape[axis];
        positions[static_cast<std::size_t>(spatial_index(axis))] !=
        without_ones({{axis, extent, 1}}))
      return {};
  if (channels.size() != 2) return {};
  const std::int64_t groups = channels[1].extent, each = channels[0].extent;
  if (channels != Factors{{Axis::C, each, 1}, {Axis::C, groups, each}}) return {};
  return RearrangingLayer{LayerKind::ChannelShuffle, {{"groups", groups}}, shape};
}

std::optional<RearrangingLayer> to_space(const Shape& shape, const Factors& channels,
                                         const std::array<Factors, 3>& positions) {
  RearrangingLayer made{LayerKind::DepthToSpace, Json::object(), shape};
  std::int64_t places = 1;
  for (const Axis axis : spatial_axes) {
    const auto i = static_cast<std::size_t>(spatial_index(axis));
    made.block[i] = product(positions[i]) / shape[axis];
    made.output[axis] *= made.block[i];
    places *= made.block[i];
  }
  if (places < 2 || shape[Axis::C] % places != 0) return {};
  made.output[Axis::C] /= places;
  for (const bool crd : {true, false}) {
    const auto of_block = block_factors(made.block, made.output[Axis::C], crd);
    bool fits =
        channels == without_ones({{Axis::C, made.output[Axis::C], crd ? places : std::int64_t{1}}});
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(spatial_index(axis));
      fits = fits && positions[i] == without_ones({{axis, shape[axis], 1}, of_block[i]});
    }
    if (!fits) continue;
    if (!crd) made.attributes["order"] = "DCR";
    return made;
  }
  return {};
}

std::optional<RearrangingLayer> to_depth(const Shape& shape, const Factors& channels,
                                         const std::array<Factors, 3>& positions) {
  RearrangingLayer made{LayerKind::SpaceToDepth, Json::object(), shape};
  Factors crd = without_ones({{Axis::C, shape[Axis::C], 1}}), dcr;
  for (const Axis axis : spatial_axes) {
    const auto i = static_cast<std::size_t>(spatial_index(axis));
    made.output[axis] = product(positions[i]);
    if (shape[axis] % made.output[axis] != 0) return {};
    made.block[i] = shape[axis] / made.output[axis];
    made.output[Axis::C] *= made.block[i];
    if (positions[i] != without_ones({{axis, made.output[axis], made.block[i]}})) return {};
    if (made.block[i] == 1) continue;
    crd.push_back({axis, made.block[i], 1});
    dcr.push_back({axis, made.block[i], 1});
  }
  if (made.output == shape) return {};  // nothing moves
  if (shape[Axis::C] > 1) dcr.push_back({Axis::C, shape[Axis::C], 1});
  if (channels != crd && channels != dcr) return {};
  if (channels != crd) made.attributes["order"] = "DCR";
  return made;
}

}  // namespace

Factors whole_factors(const Shape& shape, bool channels_last) {
  const Factor c{Axis::C, shape[Axis::C], 1}, d{Axis::D, shape[Axis::D], 1},
      h{Axis::H, shape[Axis::H], 1}, w{Axis::W, shape[Axis::W], 1};
  return without_ones(channels_last ? Factors{d, h, w, c} : Factors{c, d, h, w});
}

std::optional<std::vector<Factors>> factors_by_axis(const Factors& factors, const Extents& dims) {
  std::vector<Factors> axes(dims.size());
  auto next = factors.begin();
  Factor rest{Axis::C, 1, 1};  // the inner part of a factor that was split
  for (std::size_t axis = 1; axis < dims.size(); ++axis) {
    std::int64_t missing = dims[axis];
    while (missing > 1) {
      if (rest.extent == 1) {
        if (next == factors.end()) return {};
        rest = *next++;
      }
      const std::int64_t taken = std::min(missing, rest.extent);
      if (missing % taken != 0 || rest.extent % taken != 0) return {};
      rest.extent /= taken;
      axes[axis].push_back({rest.axis, taken, rest.stride * rest.extent});
      missing /= taken;
    }
  }
  if (rest.extent != 1 || next != factors.end()) return {};
  return axes;
}

Factors joined(const std::vector<Factors>& axes) {
  Factors all;
  for (const Factors& factors : axes)
    for (const Factor& factor : factors) {
      if (!all.empty() && all.back().axis == factor.axis &&
          all.back().stride == factor.stride * factor.extent)
        all.back() = {factor.axis, all.back().extent * factor.extent, factor.stride};
      else
        all.push_back(factor);
    }
  return all;
}

std::optional<RearrangingLayer> rearranging_layer(const Shape& shape, const Factors& channels,
                                                  const std::array<Factors, 3>& positions) {
  const Factors c = joined({channels});
  std::array<Factors, 3> p;
  std::ranges::transform(positions, p.begin(),
                         [](const Factors& factors) { return joined({factors}); });
  if (auto made = shuffle(shape, c, p)) return made;
  if (auto made = to_space(shape, c, p)) return made;
  return to_depth(shape, c, p);
}

}  // namespace stratplan::interop
