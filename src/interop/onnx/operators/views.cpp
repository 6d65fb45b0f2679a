// Operators whose output is a view of their input: with other extents, or with axes in another
// order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

/// Returns `target` with the network's own number of samples, because an export may have written
/// its batch into a Reshape. The first extent is replaced if the others are those of one sample.
Extents with_own_samples(const Operation& op, const Tensor& x, Extents target) {
  const bool baked =
      op.graph.batch_is_open() && !target.empty() && target[0] > 0 && target[0] != x.dims[0];
  if (!baked) return target;
  const Extents rest(target.begin() + 1, target.end());
  if (std::count(rest.begin(), rest.end(), -1) == 1 ||
      elements_of(rest) == elements_of(x.dims) / x.dims[0])
    target[0] = x.dims[0];
  return target;
}

/// Returns the input, which may be a view but is not repeated.
Tensor unrepeated(const Operation& op) {
  const Tensor x = op.any(0);
  return x.unrepeated.empty() ? x : op.tensor(0);
}

/// Defines the output as a view of x whose axes lie in another order.
void turn(const Operation& op, Tensor x, const std::vector<std::int64_t>& order) {
  const std::vector<Factors> axes = op.factors(x);
  std::vector<Factors> turned;
  Extents dims;
  for (const std::int64_t axis : order) {
    turned.push_back(axes[static_cast<std::size_t>(axis)]);
    dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
  }
  x.view = joined(turned);
  for (const bool last : {false, true}) {
    if (x.view != whole_factors(op.graph.shape(x), last)) continue;
    x.view.clear();
    x.channels_last = last;
    break;
  }
  op.view(x, dims);
}

}  // namespace

void flatten(const Operation& op) {
  const Tensor x = unrepeated(op);
  op.view(x, flattened(x.dims, op.node.integer("axis", 1)));
}

void reshape(const Operation& op) {
  const Tensor x = unrepeated(op);
  const Extents target = op.list("shape", 1);
  need(target.size() <= 8,
       fmt::format("expected a reshape to at most 8 axes, found {}", target.size()));
  op.view(x,
          reshaped(x.dims, with_own_samples(op, x, target), op.node.integer("allowzero", 0) != 0));
}

void squeeze(const Operation& op) {
  const Tensor x = unrepeated(op);
  auto axes = op.list("axes", 1);
  if (axes.empty())  // all axes of extent 1, except the samples' axis
    for (std::size_t axis = 1; axis < x.dims.size(); ++axis)
      if (x.dims[axis] == 1) axes.push_back(static_cast<std::int64_t>(axis));
  need(std::find(axes.begin(), axes.end(), 0) == axes.end(),
       "the axis of the samples cannot be squeezed");
  op.view(x, axes.empty() ? x.dims : squeezed(x.dims, axes));
}

void unsqueeze(const Operation& op) {
  if (const auto axes = op.list("axes", 1); axes == std::vector<std::int64_t>{0})
    return op.graph.define_stack(op.node.output(0), {{op.tensor(0)}, 0});
  const Tensor x = unrepeated(op);
  op.view(x, unsqueezed(x.dims, op.list("axes", 1)));
}

void transpose(const Operation& op) {
  std::vector<std::int64_t> order = op.node.integers("perm");
  const std::size_t rank = order.size();
  std::vector<std::int64_t> to_first{0, static_cast<std::int64_t>(rank) - 1}, to_last{0};
  for (std::size_t axis = 1; axis + 1 < rank; ++axis)
    to_first.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t axis = 2; axis < rank; ++axis)
    to_last.push_back(static_cast<std::int64_t>(axis));
  to_last.push_back(1);
  if (rank >= 3 && order == to_first && op.graph.is_unused_input(op.node.input(0)))
    op.graph.tensor(op.node.input(0), true);  // images with channels last
  Tensor x = unrepeated(op);
  need(rank == x.dims.size(), "perm lists another number of axes than the input has");
  order = from_front(order, rank);
  need_permutation(order, rank);
  Extents dims, moved;
  for (const std::int64_t axis : order) {
    dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
    if (dims.back() != 1) moved.push_back(axis);
  }
  need(order[0] == 0,
       fmt::format("the permutation ({}) moves elements to other samples", fmt::join(order, ", ")));
  const bool turns = rank >= 3 && x.view.empty() && op.keeps_channels(x) &&
                     order == (x.channels_last ? to_first : to_last);
  if (!turns && !std::is_sorted(moved.begin(), moved.end())) return turn(op, x, order);
  // Axes of extent 1 may go anywhere.
  x.channels_last = x.channels_last != turns;
  op.view(x, dims);
}

/// Defines the output as x repeated along axes of extent 1. Nodes that broadcast read it as it is.
void expand(const Operation& op) {
  Tensor x = unrepeated(op);
  const std::vector<std::int64_t> shape = op.list("shape", 1);
  Extents own = x.dims;
  need(shape.size() <= own.size(), "expected as many axes as its input has, found more");
  Extents wanted = own;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t& extent = wanted[own.size() - shape.size() + i];
    need(extent == 1 || shape[i] == 1 || shape[i] == extent,
         fmt::format("the extent {} cannot be repeated to {}", extent, shape[i]));
    extent = std::max(extent, shape[i]);
  }
  need(wanted[0] == own[0], "it repeats samples");
  if (wanted == own) return op.output(x);
  x.unrepeated = std::exchange(x.dims, wanted);
  op.output(x);
}

namespace {

/// Adds a layer between the image x and a deep or wide image.
void rearrange(const Operation& op, LayerKind kind, bool crd) {
  const Tensor x = op.image(0, 1);
  const std::int64_t block = op.node.integer("blocksize", 0);
  const bool to_space = kind == LayerKind::DepthToSpace;
  need(block >= 1 && block <= largest_extent && x.dims.size() == 4,
       "expected an image and the extent of a block");
  Shape output = op.graph.shape(x);
  std::int64_t places = block;
  need(multiply_within(places, block, largest_extent) &&
           (to_space ? output[Axis::C] % places == 0
                     : output[Axis::H] % block == 0 && output[Axis::W] % block == 0),
       fmt::format("blocks of {} do not divide its input", block));
  output[Axis::C] = to_space ? output[Axis::C] / places : output[Axis::C] * places;
  for (const Axis axis : {Axis::H, Axis::W})
    output[axis] = to_space ? output[axis] * block : output[axis] / block;
  need(std::ranges::all_of(output.extent, [](auto extent) { return extent <= largest_extent; }),
       "its output is out of range");
  Json attributes{{"block", op.along({1, block, block})}};
  if (!crd) attributes["order"] = "DCR";
  op.layer(kind, x, output, attributes);
}

}  // namespace

void depth_to_space(const Operation& op) {
  rearrange(op, LayerKind::DepthToSpace, op.node.text("mode", "DCR") == "CRD");
}

void space_to_depth(const Operation& op) { rearrange(op, LayerKind::SpaceToDepth, false); }

}  // namespace stratplan::interop
