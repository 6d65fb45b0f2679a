// Import of functions of two or more tensors, element by element, with what is broadcast.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// The axes of a function's output: their extents, and the factors of its layer that they hold.
struct Joint {
  Extents dims;
  std::vector<Factors> axes;
  Shape output;
};

/// Whether an axis of extent 1 of a layer with this shape can be repeated as the axis that holds
/// `factors` of a layer of shape `other`.
bool repeats(const Shape& shape, const Factors& factors, const Shape& other) {
  return std::ranges::all_of(factors, [&](const Factor& factor) {
    return factor.extent == other[factor.axis] && shape[factor.axis] == 1;
  });
}

/// Returns the joint axes of two tensors. An axis of extent 1 is broadcast, except the samples'.
Joint joint_of(const Operation& op, const Tensor& a, const Tensor& b) {
  const Shape of_a = op.graph.shape(a), of_b = op.graph.shape(b);
  need(a.dims.size() == b.dims.size(),
       fmt::format("its inputs' axes do not correspond: ({}) and ({})", fmt::join(a.dims, ", "),
                   fmt::join(b.dims, ", ")));
  const auto axes_a = op.factors(a), axes_b = op.factors(b);
  Joint joint{a.dims, axes_a, of_a};
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const bool first_repeats = a.dims[i] == 1 && b.dims[i] > 1,
               second_repeats = b.dims[i] == 1 && a.dims[i] > 1;
    need(a.dims[i] == b.dims[i] || (i > 0 && (first_repeats || second_repeats)),
         fmt::format("the extents {} and {} along one axis cannot be broadcast", a.dims[i],
                     b.dims[i]));
    const bool fits = first_repeats    ? repeats(of_a, axes_b[i], of_b)
                      : second_repeats ? repeats(of_b, axes_a[i], of_a)
                                       : axes_a[i] == axes_b[i];
    need(fits, fmt::format("its inputs' axes do not correspond: ({}) and ({})",
                           fmt::join(a.dims, ", "), fmt::join(b.dims, ", ")));
    joint.dims[i] = std::max(a.dims[i], b.dims[i]);
    if (first_repeats) joint.axes[i] = axes_b[i];
  }
  for (const Axis axis : all_axes) joint.output[axis] = std::max(of_a[axis], of_b[axis]);
  return joint;
}

/// Returns the extents that the model gives x, and x as it was before the model repeated it.
std::pair<Extents, Tensor> before_repetition(Tensor x) {
  Extents stated = x.dims;
  if (!x.unrepeated.empty()) x.dims = std::exchange(x.unrepeated, {});
  return {stated, x};
}

bool is_alike(const Operation& op, const Tensor& a, const Tensor& b) {
  return a.dims == b.dims && op.graph.shape(a) == op.graph.shape(b) && a.view == b.view &&
         a.channels_last == b.channels_last;
}

/// Returns f(a, b), of the extents that their broadcast has.
Tensor applied(const Operation& op, BinaryFunction function, const Tensor& a, const Tensor& b) {
  const bool adds = function == BinaryFunction::BroadcastAdd;
  if (is_alike(op, a, b))
    return op.alike(adds ? LayerType(LayerKind::Add) : LayerType(function), {a, b});
  const Joint joint = joint_of(op, a, b);
  const bool same = op.graph.shape(a) == op.graph.shape(b);
  Tensor made =
      op.made(adds && same ? LayerType(LayerKind::Add) : LayerType(function), {a, b}, joint.output);
  made.dims = joint.dims;
  const bool a_is_larger = op.graph.shape(a).elements() >= op.graph.shape(b).elements();
  return op.ordered(made, joint.axes, a_is_larger ? a.channels_last : b.channels_last);
}

/// Whether the tensors' axes hold corresponding axes of their layers.
bool correspond(const Operation& op, const Tensor& a, const Tensor& b) {
  if (is_alike(op, a, b)) return true;
  try {
    joint_of(op, a, b);
    return true;
  } catch (const Inexpressible&) {
    return false;
  }
}

/// Returns input i, which is x, as an image if a layer makes one of it. Where there is one channel,
/// it may be any axis of extent 1, and what the model takes for channels are positions.
Tensor as_image(const Operation& op, int i, const Tensor& x) {
  if (x.view.empty() && (x.channels_last ? op.channels(x) > 1 : op.is_image(x))) return x;
  const Factors order = x.view.empty() ? whole_factors(op.graph.shape(x), x.channels_last) : x.view;
  return op.graph.moved(op.node.input(i), x, order).value_or(x);
}

/// Defines the output as `function` of the node's two inputs.
void of_two(const Operation& op, BinaryFunction function) {
  const auto [stated_a, a] = before_repetition(op.any(0));
  const auto [stated_b, b] = before_repetition(op.any(1));
  Extents stated = stated_a;
  for (std::size_t i = 0; i < std::min(stated_a.size(), stated_b.size()); ++i)
    stated[i] = std::max(stated_a[i], stated_b[i]);
  Extents own = a.dims;
  for (std::size_t i = 0; i < std::min(a.dims.size(), b.dims.size()); ++i)
    own[i] = std::max(a.dims[i], b.dims[i]);
  const bool as_is = own == stated && (a.view.empty() ? b.view.empty() : a.view == b.view);
  if (as_is && correspond(op, a, b)) return op.output(applied(op, function, a, b));
  if (own == stated && std::min(a.view.size(), b.view.size()) == 0)
    return op.output(applied(op, function, as_image(op, 0, a), as_image(op, 1, b)));
  op.output(applied(op, function, op.with_channels(0), op.with_channels(1)));
}

/// Defines the output as `function` of the node's first two inputs, then of that and the third, and
/// so on.
void of_all(const Operation& op, BinaryFunction function) {
  if (op.node.inputs() == 2) return of_two(op, function);
  Tensor made = op.tensor(0);
  for (int i = 1; i < op.node.inputs(); ++i) made = applied(op, function, made, op.tensor(i));
  op.output(made);
}

/// A pointwise function that ONNX models may express as x times a chain of other functions of x.
struct Gated {
  PointwiseFunction function;
  std::vector<LayerType> of_x;  ///< the chain, its last function first
};

/// Whether `draft` is the HardSigmoid in HardSwish: max(0, min(1, x / 6 + 1 / 2)).
bool gates_hard_swish(const Draft& draft) {
  const auto is = [&](const char* name, double value) {
    return std::abs(draft.attributes.value(name, 0.0) - value) < 1e-6;
  };
  return is("alpha", 1.0 / 6) && is("beta", 0.5);
}

/// Whether `gate` is the chain gated.of_x of functions of x, with the constants that gated.function
/// implies.
bool leads_to(const Graph& graph, const Tensor& x, const Tensor& gate, const Gated& gated) {
  std::size_t at = gate.draft;
  for (const LayerType& type : gated.of_x) {
    const Draft& draft = graph.drafts[at];
    if (draft.type != type || draft.inputs.size() != 1) return false;
    if (type == PointwiseFunction::HardSigmoid && !gates_hard_swish(draft)) return false;
    at = draft.inputs[0];
  }
  return at == x.draft && x.dims == gate.dims;
}

/// A number times, and plus, a layer's output.
struct Line {
  std::size_t draft = 0;  ///< of that layer
  double factor = 1, summand = 0;
};
/// Returns the straight line that a draft computes, else the line that changes nothing.
Line line_of(const Graph& graph, std::size_t at) {
  const Draft& draft = graph.drafts[at];
  const auto& fixed = draft.fixed;
  if (!fixed || fixed->factor.size() > 1 || fixed->summand.size() > 1) return {at};
  return {draft.inputs[0], fixed->factor[0], fixed->summand[0]};
}

/// Returns x if `product` is x times f and `gate` is 1 + erf(x / sqrt(2)), as exporters write the
/// gelu: their product is 2 f gelu(x).
std::optional<Line> gelu_by_erf(const Graph& graph, const Tensor& product, const Tensor& gate) {
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-6; };
  const Line x = line_of(graph, product.draft), sum = line_of(graph, gate.draft);
  const Draft& erf = graph.drafts[sum.draft];
  if (erf.type != PointwiseFunction::Erf || !near(sum.factor, 1) || !near(sum.summand, 1) ||
      x.summand != 0)
    return {};
  const Line inner = line_of(graph, erf.inputs[0]);
  const bool fits = near(inner.factor, std::sqrt(0.5)) && inner.summand == 0;
  if (fits && inner.draft == x.draft) return x;
  if (fits && inner.draft == product.draft) return Line{product.draft};
  return {};
}

std::optional<PointwiseFunction> gated_function(const Graph& graph, const Tensor& x,
                                                const Tensor& gate) {
  using enum PointwiseFunction;
  static const std::vector<Gated> all{
      {Square, {}}, {Silu, {Sigmoid}}, {HardSwish, {HardSigmoid}}, {Mish, {Tanh, Softplus}}};
  for (const Gated& gated : all)
    if (leads_to(graph, x, gate, gated)) return gated.function;
  return {};
}

/// Whether a draft is the mean over the channels of draft `of`.
bool is_mean_of_channels(const Graph& graph, std::size_t at, std::size_t of) {
  const Draft& draft = graph.drafts[at];
  return draft.type == LayerKind::Reduce && draft.inputs[0] == of &&
         draft.attributes.value("function", "") == "mean" &&
         draft.attributes.value("axes", Json()) == Json{"C"};
}

/// A normalization over channels that is written out as (x - mean) / sqrt(variance + epsilon).
struct WrittenOut {
  std::size_t x = 0;
  double epsilon = 0;
};
std::optional<WrittenOut> layer_norm_of(const Graph& graph, const Tensor& centred,
                                        const Tensor& deviation) {
  const Draft &difference = graph.drafts[centred.draft], &root = graph.drafts[deviation.draft];
  if (difference.type != BinaryFunction::Subtract || root.type != PointwiseFunction::Sqrt)
    return {};
  const std::size_t x = difference.inputs[0];
  const Line variance = line_of(graph, root.inputs[0]);
  if (!is_mean_of_channels(graph, difference.inputs[1], x) || variance.factor != 1 ||
      !(variance.summand > 0))
    return {};
  const Draft& mean = graph.drafts[variance.draft];
  if (mean.inputs.empty() || !is_mean_of_channels(graph, variance.draft, mean.inputs[0])) return {};
  const Draft& square = graph.drafts[mean.inputs[0]];
  if (square.type != PointwiseFunction::Square || square.inputs[0] != centred.draft) return {};
  return WrittenOut{x, variance.summand};
}

/// The greater (or, of Min, the lesser) of x and a number.
void clip_by(const Operation& op) {
  const int side = op.is_constant(0) ? 0 : 1;
  const Constant limit = op.constant(side);
  need(is_filled(limit), "expected a constant of one number");
  const double value = tidy(static_cast<double>(as_floats(limit).floats()[0]));
  op.point_wise(PointwiseFunction::Clip, {op.any(1 - side)},
                {{op.node.op() == "Max" ? "min" : "max", value}});
  op.graph.read_as_constant(op.node, limit);
}

}  // namespace

/// Several tensors of one shape are added by one layer.
void add(const Operation& op) {
  if (op.node.inputs() == 1) return identity(op);
  if (reads_one_constant(op)) return with_constant(op);
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.node.inputs(); ++i) inputs.push_back(op.any(i));
  const bool alike = std::ranges::all_of(inputs, [&](const Tensor& x) {
    return x.dims == inputs[0].dims && op.graph.shape(x) == op.graph.shape(inputs[0]) &&
           x.view == inputs[0].view && x.channels_last == inputs[0].channels_last &&
           x.unrepeated.empty();
  });
  alike ? op.point_wise(LayerKind::Add, inputs) : of_all(op, BinaryFunction::BroadcastAdd);
}

void subtract(const Operation& op) {
  reads_one_constant(op) ? with_constant(op) : of_two(op, BinaryFunction::Subtract);
}

void multiply(const Operation& op) {
  if (reads_one_constant(op)) return with_constant(op);
  const Tensor a = op.any(0), b = op.any(1);
  for (const auto& [x, gate] : {std::pair{a, b}, {b, a}})
    if (const auto function = gated_function(op.graph, x, gate))
      return op.point_wise(*function, {x});
  for (const auto& [x, gate] : {std::pair{a, b}, {b, a}})
    if (const auto line = gelu_by_erf(op.graph, x, gate); line && x.dims == gate.dims) {
      Tensor argument = x;
      argument.draft = line->draft;
      const Tensor gelu = op.alike(PointwiseFunction::Gelu, {argument});
      return op.output(with_constants(op, gelu, {{2 * line->factor}, {0}}));
    }
  of_two(op, BinaryFunction::Multiply);
}

void divide(const Operation& op) {
  if (reads_one_constant(op)) return with_constant(op);
  if (const auto found = layer_norm_of(op.graph, op.any(0), op.any(1))) {
    Tensor x = op.any(0);
    x.draft = found->x;
    return op.point_wise(LayerKind::LayerNorm, {x},
                         {{"epsilon", tidy(found->epsilon)}, {"affine", "none"}});
  }
  of_two(op, BinaryFunction::Divide);
}

void extremum(const Operation& op) {
  if (op.node.inputs() == 1) return identity(op);
  if (reads_one_constant(op)) return clip_by(op);
  of_all(op, op.node.op() == "Max" ? BinaryFunction::Maximum : BinaryFunction::Minimum);
}

}  // namespace stratplan::interop
