// Operators that move elements to other places of their axes: padding, slices, splits, and
// concatenations of positions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

/// Numbers before each axis of a tensor, then behind each axis, as ONNX lists pads.
using Pads = std::vector<std::int64_t>;

/// Returns values along D, H, W, one for each spatial axis of an image with `rank` axes.
template <class Value>
std::array<Value, 3> by_axis(std::size_t rank, Value otherwise,
                             const std::function<Value(std::size_t axis)>& value) {
  std::array<Value, 3> values{otherwise, otherwise, otherwise};
  for (std::size_t axis = 2; axis < rank; ++axis) values[3 + axis - rank] = value(axis);
  return values;
}

/// What is added around an image.
struct Border {
  PaddingMode mode = PaddingMode::Constant;
  double value = 0;
};

/// Returns the image x with a border around it. Negative pads cut elements off.
Tensor padded(const Operation& op, const Tensor& x, const Pads& pads, const Border& border = {}) {
  const std::size_t rank = x.dims.size();
  const bool repeats = border.mode != PaddingMode::Constant;
  for (const std::int64_t value : pads)
    need(std::abs(value) <= largest_extent, fmt::format("padding of {} is out of range", value));
  need(pads[0] == 0 && pads[rank] == 0, "expected no padding of samples");
  for (std::size_t axis = 1; axis < rank; ++axis)
    need(x.dims[axis] + pads[axis] + pads[rank + axis] >= 1,
         "its padding leaves nothing of the input");
  if (std::ranges::all_of(pads, [](std::int64_t value) { return value == 0; })) return x;
  Shape output = op.graph.shape(x);
  for (std::size_t axis = 1; axis < rank; ++axis)
    output.extent[axis == 1 ? 1 : axis_count + axis - rank] += pads[axis] + pads[rank + axis];
  Json attributes{{"padding", op.along(by_axis<Json>(rank, 0, [&](std::size_t axis) {
                     const std::int64_t before = pads[axis], behind = pads[rank + axis];
                     return before == behind ? Json(before) : Json{before, behind};
                   }))}};
  const bool pads_channels = pads[1] != 0 || pads[rank + 1] != 0;
  need(!repeats || !pads_channels, "expected padding of channels with a constant");
  if (pads_channels) attributes["channel_padding"] = {pads[1], pads[rank + 1]};
  if (repeats) {
    attributes["padding_mode"] = padding_mode_names[static_cast<std::size_t>(border.mode)];
    for (std::size_t axis = 2; axis < rank; ++axis) {
      const std::int64_t most = std::max(pads[axis], pads[rank + axis]), extent = x.dims[axis];
      need(border.mode != PaddingMode::Reflect || most < extent,
           fmt::format("it reflects {} of {} positions", most, extent));
      need(border.mode != PaddingMode::Wrap || most <= extent,
           fmt::format("it wraps around {} of {} positions", most, extent));
    }
  } else if (border.value != 0) {
    attributes["value"] = border.value;
  }
  return op.graph.add({op.node.name(), LayerKind::Pad, {x.draft}, output, attributes}, rank);
}

/// Numbers before and behind the positions along D, H, W.
using SpatialPads = std::array<std::array<std::int64_t, 2>, 3>;

/// Returns the padding of a layer that padded() made.
SpatialPads pads_of(const Operation& op, const Draft& pad) {
  const Json& all = pad.attributes.at("padding");
  const std::size_t axes = op.graph.spatial_axes();
  SpatialPads pads{};
  for (std::size_t i = 0; i < axes; ++i) {
    const Json& value = all.is_array() ? all[i] : all;
    pads[3 - axes + i] =
        value.is_array() ? std::array{value[0].get<std::int64_t>(), value[1].get<std::int64_t>()}
                         : std::array{value.get<std::int64_t>(), value.get<std::int64_t>()};
  }
  return pads;
}

/// What is padded with -infinity is padded with this number. No maximum is less.
constexpr double lowest = std::numeric_limits<float>::lowest();

/// Returns the positions that the image `part` holds of `whole` along D, H or W, if it was cut from
/// that image along this axis alone.
std::optional<std::pair<std::int64_t, std::int64_t>> cut_from(const Operation& op,
                                                              const Tensor& part,
                                                              const Tensor& whole,
                                                              std::size_t axis) {
  const Draft& draft = op.graph.drafts[part.draft];
  if (draft.type != LayerKind::Pad || draft.inputs[0] != whole.draft ||
      draft.attributes.contains("channel_padding"))
    return {};
  const SpatialPads pads = pads_of(op, draft);
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (std::max(pads[i][0], pads[i][1]) > 0 ||
        (i != axis && pads[i] != std::array<std::int64_t, 2>{}))
      return {};
  const std::int64_t extent = op.graph.shape(whole).extent[2 + axis];
  return std::pair{-pads[axis][0], extent + pads[axis][1]};
}

/// Returns the image that the parts spell: an image between its last and its first positions along
/// an axis, as exporters write padding that wraps around. Nothing if they spell none.
std::optional<Tensor> wrapped(const Operation& op, const std::vector<Tensor>& parts,
                              std::size_t axis) {
  const std::size_t rank = parts[0].dims.size(), spatial = 3 + axis - rank;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, parts.size()); ++i) {
    const Tensor& whole = parts[i];
    if (parts.size() > i + 2) continue;
    const std::int64_t extent = whole.dims[axis];
    Pads pads(2 * rank, 0);
    bool matches = true;
    if (i > 0) {
      const auto cut = cut_from(op, parts[0], whole, spatial);
      matches = cut && cut->second == extent;
      if (matches) pads[axis] = extent - cut->first;
    }
    if (parts.size() > i + 1) {
      const auto cut = cut_from(op, parts[i + 1], whole, spatial);
      matches = matches && cut && cut->first == 0;
      if (matches) pads[rank + axis] = cut->second;
    }
    if (!matches) continue;
    const Draft& before = op.graph.drafts[whole.draft];
    Tensor x = whole;
    if (before.type == LayerKind::Pad && before.attributes.value("padding_mode", "") == "wrap") {
      const SpatialPads others = pads_of(op, before);
      if (others[spatial] == std::array<std::int64_t, 2>{}) {  // another axis of the same padding
        for (std::size_t other = 2; other < rank; ++other) {
          pads[other] += others[3 + other - rank][0];
          pads[rank + other] += others[3 + other - rank][1];
          x.dims[other] -= others[3 + other - rank][0] + others[3 + other - rank][1];
        }
        x.draft = before.inputs[0];
      }
    }
    return padded(op, x, pads, {PaddingMode::Wrap});
  }
  return {};
}

/// Returns every step-th position of the image x along its spatial axes. `steps`: by axis of x.
Tensor strided(const Operation& op, const Tensor& x, const std::vector<std::int64_t>& steps) {
  const std::size_t rank = x.dims.size();
  if (std::ranges::all_of(steps, [](std::int64_t step) { return step == 1; })) return x;
  Shape output = op.graph.shape(x);
  for (std::size_t axis = 2; axis < rank; ++axis) {
    std::int64_t& extent = output.extent[axis_count + axis - rank];
    extent = (extent - 1) / steps[axis] + 1;
  }
  const Json stride =
      op.along(by_axis<Json>(rank, 1, [&](std::size_t axis) { return Json(steps[axis]); }));
  return op.graph.add({op.node.name(),
                       LayerKind::AveragePool,
                       {x.draft},
                       output,
                       {{"kernel", 1}, {"stride", stride}}},
                      rank);
}

/// Returns the elements [begin, end) of an axis, with Python's rules for negative and large
/// numbers.
std::pair<std::int64_t, std::int64_t> python_range(std::int64_t begin, std::int64_t end,
                                                   std::int64_t extent) {
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  return {place(begin), place(end)};
}

}  // namespace

void pad(const Operation& op) {
  Tensor x = op.image(0);
  const std::string mode = op.node.text("mode", "constant");
  const auto named = std::ranges::find(padding_mode_names, mode);
  need(named != padding_mode_names.end(), fmt::format("padding of mode {} is not supported", mode));
  Border border{static_cast<PaddingMode>(named - padding_mode_names.begin())};
  if (border.mode == PaddingMode::Constant)
    border.value = std::max(op.scalar("value", 2).value_or(0), lowest);
  need(std::isfinite(border.value), "expected padding with a finite value, or with -infinity");
  const std::size_t rank = x.dims.size();
  auto pads = op.list(op.node.has("paddings") ? "paddings" : "pads", 1);
  if (op.given(3)) {  // pads along some axes only
    const auto axes = from_front(op.constant(3).integers(), rank);
    need(pads.size() == 2 * axes.size(), "expected two pads for each axis in axes");
    Pads all(2 * rank, 0);
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (const std::size_t side : {0, 1})
        all[static_cast<std::size_t>(axes[i]) + side * rank] = pads[i + side * axes.size()];
    pads = all;
  }
  need(pads.size() == 2 * rank, "expected two pads for each axis of the input");
  if (border.mode != PaddingMode::Constant) {  // the border is made of what is left
    Pads cut = pads;
    for (std::int64_t& value : cut) value = std::min<std::int64_t>(value, 0);
    for (std::int64_t& value : pads) value = std::max<std::int64_t>(value, 0);
    x = padded(op, x, cut);
  }
  op.output(padded(op, x, pads, border));
}

void merge_padding(const Operation& op, Tensor& x, Windows& windows) {
  const Draft& draft = op.graph.drafts[x.draft];
  if (draft.type != LayerKind::Pad || draft.attributes.value("value", 0.0) > lowest ||
      draft.attributes.contains("channel_padding"))
    return;
  const SpatialPads pads = pads_of(op, draft);
  Windows merged = windows;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    merged[i].pad_before += pads[i][0];
    merged[i].pad_after += pads[i][1];
    // A pooling has no windows over padding alone, and no negative padding.
    if (std::min(pads[i][0], pads[i][1]) < 0 ||
        std::max(merged[i].pad_before, merged[i].pad_after) >= merged[i].span())
      return;
  }
  windows = merged;
  for (std::size_t axis = 2; axis < x.dims.size(); ++axis) {
    const auto& [before, behind] = pads[3 + axis - x.dims.size()];
    x.dims[axis] -= before + behind;
  }
  x.draft = draft.inputs[0];
}

void slice(const Operation& op) {
  const Tensor x = op.image(0);
  const std::size_t rank = x.dims.size();
  const auto starts = op.list("starts", 1), ends = op.list("ends", 2);
  auto axes = op.list("axes", 3), steps = op.given(4) ? op.constant(4).integers() : Pads{};
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  axes = from_front(axes, rank);
  if (steps.empty()) steps.assign(starts.size(), 1);
  need(starts.size() == axes.size() && ends.size() == axes.size() && steps.size() == axes.size(),
       "expected one start, end and step for each axis");
  Pads pads(2 * rank, 0), by_axis(rank, 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t extent = x.dims[axis];
    const auto [begin, end] = python_range(starts[i], ends[i], extent);
    need(steps[i] >= 1 && steps[i] <= largest_extent,
         fmt::format("a slice with step {} is not supported", steps[i]));
    need(axis != 0 || (begin == 0 && end == extent && steps[i] == 1),
         "it cuts the samples of the batch");
    need(axis != 1 || steps[i] == 1, "it takes some channels of a range, and leaves others out");
    need(begin < end, "its slice is empty");
    pads[axis] = -begin;
    pads[rank + axis] = end - extent;
    by_axis[axis] = steps[i];
  }
  op.output(strided(op, padded(op, x, pads), by_axis));
}

/// One index, or consecutive ones, along the axis of channels or positions. The axis is gone where
/// the index is a number.
void gather(const Operation& op) {
  const Tensor x = op.image(0);
  const Constant indices = op.constant(1);
  const std::size_t rank = x.dims.size();
  const auto axis = static_cast<std::size_t>(from_front({op.node.integer("axis", 0)}, rank)[0]);
  const std::int64_t extent = x.dims[axis];
  need(axis != 0, "it takes some samples of the batch");
  auto places = indices.integers();
  for (std::int64_t& place : places) place += place < 0 ? extent : 0;
  need(!places.empty() && places.front() >= 0 && places.back() < extent &&
           std::ranges::adjacent_find(places, [](auto a, auto b) { return b != a + 1; }) ==
               places.end(),
       fmt::format("expected one index or consecutive ones of an axis of extent {}, found {}",
                   extent, fmt::join(indices.integers(), ", ")));
  Pads pads(2 * rank, 0);
  pads[axis] = -places.front();
  pads[rank + axis] = places.back() + 1 - extent;
  const Tensor taken = padded(op, x, pads);
  Extents dims = taken.dims;
  if (indices.extents().empty()) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  op.view(taken, dims);
}

void concat_positions(const Operation& op, const std::vector<Tensor>& parts, std::size_t axis) {
  const std::size_t rank = parts[0].dims.size();
  need(axis >= 2, "expected a concatenation along channels or positions, found another axis");
  std::int64_t extent = 0;
  for (int i = 0; i < op.node.inputs(); ++i) {
    const Tensor part = op.image(i, 1);
    Extents others = part.dims;
    need(others.size() == rank, "the tensors to concatenate differ in their axes");
    extent += std::exchange(others[axis], parts[0].dims[axis]);
    need(others == parts[0].dims, "the tensors to concatenate differ in more than one axis");
  }
  if (const auto found = wrapped(op, parts, axis)) return op.output(*found);
  // Each part becomes an image with zeros at the places of the others. Their sum has all parts.
  std::vector<Tensor> placed;
  std::int64_t begin = 0;
  for (const Tensor& part : parts) {
    Pads pads(2 * rank, 0);
    pads[axis] = begin;
    begin += part.dims[axis];
    pads[rank + axis] = extent - begin;
    placed.push_back(padded(op, part, pads));
  }
  op.point_wise(LayerKind::Add, placed);
}

void split(const Operation& op) {
  const Tensor x = op.image(0);
  const std::size_t rank = x.dims.size(), parts = static_cast<std::size_t>(op.node.outputs());
  const auto axis = static_cast<std::size_t>(from_front({op.node.integer("axis", 0)}, rank)[0]);
  need(axis != 0, "it splits the samples of the batch");
  auto lengths = op.list("split", 1);
  if (lengths.empty()) {
    const auto count = static_cast<std::int64_t>(parts);
    lengths.assign(parts, (x.dims[axis] + count - 1) / count);
    lengths.back() = x.dims[axis] - (count - 1) * lengths.front();
  }
  need(lengths.size() == parts && std::ranges::all_of(lengths, [](auto n) { return n >= 1; }) &&
           std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == x.dims[axis],
       "expected lengths that add up to the extent of the axis, one for each output");
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts; begin += lengths[i++]) {
    const std::string& name = op.node.output(static_cast<int>(i));
    if (name.empty() || !op.graph.readers.contains(name)) continue;
    Pads pads(2 * rank, 0);
    pads[axis] = -begin;
    pads[rank + axis] = begin + lengths[i] - x.dims[axis];
    op.graph.define(name, padded(op, x, pads));
  }
}

}  // namespace stratplan::interop
