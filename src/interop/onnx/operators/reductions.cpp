// Reductions along axes, and what models compute with them: norms, softmax along any axis, and
// products of two computed tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// What one axis of a tensor, or several, hold of a layer's output.
struct Held {
  ReducedAxes whole{};           ///< whole axes of the layer
  std::optional<Factor> blocks;  ///< or runs of channels: the outer factor of the channels
  bool any() const { return blocks || std::ranges::count(whole, true) > 0; }
  bool has(Axis axis) const { return whole[static_cast<std::size_t>(axis)]; }
  bool positions() const { return has(Axis::D) || has(Axis::H) || has(Axis::W); }
};

Held held_by(const Operation& op, const Tensor& x, const std::vector<std::int64_t>& axes) {
  const std::vector<Factors> factors = op.factors(x);
  const Shape shape = op.graph.shape(x);
  std::vector<Factors> chosen;
  for (const std::int64_t axis : axes) chosen.push_back(factors[static_cast<std::size_t>(axis)]);
  Held held;
  for (const Factor& factor : joined(chosen)) {
    if (factor.extent == shape[factor.axis]) {
      held.whole[static_cast<std::size_t>(factor.axis)] = true;
      continue;
    }
    need(factor.axis == Axis::C && factor.extent * factor.stride == shape[Axis::C] &&
             chosen.size() == 1,
         "expected whole axes of the layer before, or runs of channels");
    held.blocks = factor;
  }
  return held;
}

/// Returns the tensor that `made`, the image of a layer, gives the model: with the factors of x and
/// without those of `axes`, which remain as axes of extent 1 if `keep`.
Tensor without_axes(const Operation& op, const Tensor& x, Tensor made,
                    const std::vector<std::int64_t>& axes, bool keep) {
  std::vector<Factors> factors = op.factors(x), kept;
  Extents dims;
  for (std::size_t axis = 0; axis < factors.size(); ++axis) {
    const bool reduced = std::ranges::count(axes, static_cast<std::int64_t>(axis)) > 0;
    if (reduced) factors[axis].clear();
    if (reduced && !keep) continue;
    kept.push_back(factors[axis]);
    dims.push_back(reduced ? 1 : x.dims[axis]);
  }
  made.dims = std::move(dims);
  return op.ordered(made, kept, x.channels_last);
}

Tensor channels_of(const Operation& op, const Tensor& x, std::int64_t begin, std::int64_t count) {
  Shape output = op.graph.shape(x);
  const std::int64_t all = std::exchange(output[Axis::C], count);
  if (count == all) return x;
  return op.made(LayerKind::Pad, {x}, output,
                 {{"padding", 0}, {"channel_padding", {-begin, begin + count - all}}});
}

Tensor sum_of(const Operation& op, const std::vector<Tensor>& terms) {
  if (terms.size() == 1) return terms[0];
  return op.made(LayerKind::Add, terms, op.graph.shape(terms[0]));
}

Tensor greatest_of(const Operation& op, const std::vector<Tensor>& terms) {
  Tensor greatest = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i)
    greatest = op.made(BinaryFunction::Maximum, {greatest, terms[i]}, op.graph.shape(greatest));
  return greatest;
}

Tensor scaled(const Operation& op, const Tensor& x, double factor) {
  return op.made(PointwiseFunction::Linear, {x}, op.graph.shape(x), {{"factor", tidy(factor)}});
}

/// Returns the runs of channels that the outer factor of the channels divides them into.
std::vector<Tensor> runs_of(const Operation& op, const Tensor& x, const Factor& blocks) {
  std::vector<Tensor> runs;
  for (std::int64_t i = 0; i < blocks.extent; ++i)
    runs.push_back(channels_of(op, x, i * blocks.stride, blocks.stride));
  return runs;
}

Json letters(const ReducedAxes& axes) {
  Json names = Json::array();
  for (const Axis axis : all_axes)
    if (axes[static_cast<std::size_t>(axis)])
      names.push_back(axis_names[static_cast<std::size_t>(axis)]);
  return names;
}

/// Returns the greatest of the positions along whole axes.
Tensor greatest_position(const Operation& op, const Tensor& x, const Held& held) {
  Shape output = op.graph.shape(x);
  std::array<Json, 3> kernel{1, 1, 1};
  for (const Axis axis : spatial_axes)
    if (held.has(axis))
      kernel[static_cast<std::size_t>(spatial_index(axis))] = std::exchange(output[axis], 1);
  return op.made(LayerKind::MaxPool, {x}, output, {{"kernel", op.along(kernel)}});
}

/// Returns the reduction of whole axes of a layer, as the layer's image.
Tensor reduced(const Operation& op, const Tensor& x, Reduction function, Held held) {
  if (function == Reduction::Max && held.positions()) {
    const Tensor image = greatest_position(op, x, held);
    return held.has(Axis::C) ? reduced(op, image, function, {.whole = {false, true}, .blocks = {}})
                             : image;
  }
  Shape output = op.graph.shape(x);
  bool all_positions = !held.has(Axis::C);
  for (const Axis axis : all_axes) {
    if (held.has(axis)) output[axis] = 1;
    if (is_spatial(axis)) all_positions = all_positions && output[axis] == 1;
  }
  if (function == Reduction::Mean && all_positions)
    return op.made(LayerKind::GlobalAveragePool, {x}, output);
  return op.made(LayerKind::Reduce, {x}, output,
                 {{"function", std::string(name_of(function))}, {"axes", letters(held.whole)}});
}

/// Returns the axes that a reduction names, counted from the front.
std::vector<std::int64_t> reduced_axes(const Operation& op, const Tensor& x) {
  auto axes = from_front(op.list("axes", 1), x.dims.size());
  need(!axes.empty() && std::ranges::count(axes, 0) == 0,
       "expected a reduction along some axes of each sample, found one over samples");
  return axes;
}

/// Reduces tensors that are stacked along an axis to one. Returns whether the input is such a
/// stack.
bool reduces_stack(const Operation& op, Reduction function) {
  const auto [tensors, axis] = op.graph.stack(op.node.input(0));
  if (tensors.empty()) return false;
  const Tensor& first = tensors[0];
  const auto axes = from_front(op.list("axes", 1), first.dims.size() + 1);
  need(axes == std::vector{static_cast<std::int64_t>(axis)} &&
           (axis > 0 || op.node.integer("keepdims", 1) == 0),
       "expected a reduction along the axis of the stack");
  Tensor made = function == Reduction::Max ? greatest_of(op, tensors) : sum_of(op, tensors);
  if (function == Reduction::Mean && tensors.size() > 1)
    made = scaled(op, made, 1 / static_cast<double>(tensors.size()));
  made.dims = first.dims;
  made.channels_last = first.channels_last;
  if (op.node.integer("keepdims", 1) != 0)
    made.dims.insert(made.dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  op.output(made);
  return true;
}

void reduce(const Operation& op, const Tensor& x, Reduction function,
            std::optional<PointwiseFunction> then = {}) {
  const auto axes = reduced_axes(op, x);
  Held held = held_by(op, x, axes);
  const bool keep = op.node.integer("keepdims", 1) != 0;
  bool along_positions = !op.keeps_channels(x) ? false : true;
  for (const std::int64_t axis : axes)
    along_positions = along_positions && static_cast<std::size_t>(axis) != op.channel_axis(x);
  Tensor made = x;
  if (held.blocks) {
    const auto runs = runs_of(op, x, *held.blocks);
    made = function == Reduction::Max ? greatest_of(op, runs) : sum_of(op, runs);
    if (function == Reduction::Mean)
      made = scaled(op, made, 1 / static_cast<double>(held.blocks->extent));
  } else if (held.any() || (function == Reduction::Mean && along_positions)) {
    made = reduced(op, x, function, held);  // a mean over one position is a pooling, too
  }
  if (then) made = op.made(*then, {made}, op.graph.shape(made));
  op.output(without_axes(op, x, made, axes, keep));
}

Tensor squared(const Operation& op) { return op.alike(PointwiseFunction::Square, {op.any(0)}); }

}  // namespace

void reduce_mean(const Operation& op) {
  if (!reduces_stack(op, Reduction::Mean)) reduce(op, op.any(0), Reduction::Mean);
}
void reduce_sum(const Operation& op) {
  if (!reduces_stack(op, Reduction::Sum)) reduce(op, op.any(0), Reduction::Sum);
}
void reduce_max(const Operation& op) {
  if (!reduces_stack(op, Reduction::Max)) reduce(op, op.any(0), Reduction::Max);
}
void reduce_sum_square(const Operation& op) { reduce(op, squared(op), Reduction::Sum); }
void reduce_l2(const Operation& op) {
  reduce(op, squared(op), Reduction::Sum, PointwiseFunction::Sqrt);
}
void reduce_l1(const Operation& op) {
  reduce(op, op.alike(PointwiseFunction::Abs, {op.any(0)}), Reduction::Sum);
}

/// Adds exp(x - greatest) / sum, where the greatest is taken so that no exponential overflows.
void softmax_along(const Operation& op, const Tensor& x, std::int64_t axis) {
  const Held held = held_by(op, x, {axis});
  const auto shifted = [&](const Tensor& of, const Tensor& greatest) {
    return op.alike(PointwiseFunction::Exp, {op.alike(BinaryFunction::Subtract, {of, greatest})});
  };
  if (held.blocks) {
    const auto runs = runs_of(op, x, *held.blocks);
    const Tensor greatest = greatest_of(op, runs);
    std::vector<Tensor> powers, shares;
    for (const Tensor& run : runs) powers.push_back(shifted(run, greatest));
    const Tensor sum = sum_of(op, powers);
    for (const Tensor& power : powers)
      shares.push_back(op.alike(BinaryFunction::Divide, {power, sum}));
    Tensor made = x;
    made.draft = op.made(LayerKind::Concat, shares, op.graph.shape(x)).draft;
    made.alone = true;
    op.output(made);
  } else {
    need(held.any(), "expected a softmax over several elements");
    const Tensor power = shifted(x, reduced(op, x, Reduction::Max, held));
    op.point_wise(BinaryFunction::Divide, {power, reduced(op, power, Reduction::Sum, held)});
  }
}

namespace {

/// A side of a product: the axis over which it sums, and the axis of the matrix's other side.
struct Side {
  Tensor x;
  std::int64_t summed, other;
};

}  // namespace

/// A matrix of each sample times a vector of each sample: their product element by element, summed.
void product_with_vector(const Operation& op) {
  const Tensor a = op.tensor(0), b = op.tensor(1);
  const std::int64_t rank_a = std::ssize(a.dims), rank_b = std::ssize(b.dims);
  need(rank_a == rank_b && rank_a >= 3,
       "expected two computed tensors with as many axes, of which the last two are multiplied");
  const Side left{a, rank_a - 1, rank_a - 2}, right{b, rank_b - 2, rank_b - 1};
  const auto extent = [](const Side& side, std::int64_t axis) {
    return side.x.dims[static_cast<std::size_t>(axis)];
  };
  const bool on_right = extent(right, right.other) == 1;
  need(on_right || extent(left, left.other) == 1,
       "a product of two computed matrices, expected one computed vector for each sample");
  const Side &matrix = on_right ? left : right, &vector = on_right ? right : left;
  const Held held = held_by(op, matrix.x, {matrix.summed});
  const Shape &shape = op.graph.shape(matrix.x), &small = op.graph.shape(vector.x);
  for (const Axis axis : all_axes)
    need(axis == Axis::N || small[axis] == (held.has(axis) ? shape[axis] : 1),
         "its vector does not lie along the axis of the layer that it is multiplied with");
  need(held.any() && !held.blocks, "expected a product over a whole axis of the layer before");
  const Tensor product = op.made(BinaryFunction::Multiply, {matrix.x, vector.x}, shape);
  // The axis of the sum remains with extent 1: (N, M, 1) or (N, 1, L).
  op.output(without_axes(op, matrix.x, reduced(op, product, Reduction::Sum, held), {matrix.summed},
                         true));
}

}  // namespace stratplan::interop
