// Operators that move no element: their output is the input with other extents.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"

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

}  // namespace

void flatten(const Operation& op) {
  const Tensor x = op.tensor(0);
  op.view(x, flattened(x.dims, op.node.integer("axis", 1)));
}

void reshape(const Operation& op) {
  const Tensor x = op.tensor(0);
  const Extents target = op.list("shape", 1);
  need(target.size() <= 8,
       fmt::format("expected a reshape to at most 8 axes, found {}", target.size()));
  op.view(x,
          reshaped(x.dims, with_own_samples(op, x, target), op.node.integer("allowzero", 0) != 0));
}

void squeeze(const Operation& op) {
  const Tensor x = op.tensor(0);
  auto axes = op.list("axes", 1);
  if (axes.empty())  // all axes of extent 1, except the samples' axis
    for (std::size_t axis = 1; axis < x.dims.size(); ++axis)
      if (x.dims[axis] == 1) axes.push_back(static_cast<std::int64_t>(axis));
  need(std::find(axes.begin(), axes.end(), 0) == axes.end(),
       "the axis of the samples cannot be squeezed");
  op.view(x, axes.empty() ? x.dims : squeezed(x.dims, axes));
}

void unsqueeze(const Operation& op) {
  const Tensor x = op.tensor(0);
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
  Tensor x = op.tensor(0);
  need(rank == x.dims.size(), "perm lists another number of axes than the input has");
  order = from_front(order, rank);
  need_permutation(order, rank);
  Extents dims, moved;
  for (const std::int64_t axis : order) {
    dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
    if (dims.back() != 1) moved.push_back(axis);
  }
  const bool turns =
      rank >= 3 && op.keeps_channels(x) && order == (x.channels_last ? to_first : to_last);
  need(turns || std::is_sorted(moved.begin(), moved.end()),  // axes of extent 1 may go anywhere
       fmt::format("the permutation ({}) moves elements within a sample", fmt::join(order, ", ")));
  x.channels_last = x.channels_last != turns;
  op.view(x, dims);
}

}  // namespace stratplan::interop
