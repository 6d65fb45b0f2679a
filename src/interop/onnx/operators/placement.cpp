// Operators that move elements to other places of their axes: padding, slices and splits.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
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

/// Returns the image x with zeros around it. Negative pads cut elements off.
Tensor padded(const Operation& op, const Tensor& x, const Pads& pads) {
  const std::size_t rank = x.dims.size();
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
  if (pads[1] != 0 || pads[rank + 1] != 0)
    attributes["channel_padding"] = {pads[1], pads[rank + 1]};
  return op.graph.add({op.node.name(), LayerKind::Pad, {x.draft}, output, attributes}, rank);
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
  const Tensor x = op.image(0);
  need(op.node.text("mode", "constant") == "constant",
       fmt::format("expected padding of mode constant, found {}", op.node.text("mode", "")));
  need(op.scalar("value", 2).value_or(0) == 0, "expected padding with zero, found another value");
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
  op.output(padded(op, x, pads));
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
