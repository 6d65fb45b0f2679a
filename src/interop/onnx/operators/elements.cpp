// Import of element-wise operators (pointwise functions, dropout, arithmetic), softmax, and
// concatenation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// Returns the layer's shape if each axis of the tensor x is one axis of the layer, else nothing.
std::optional<Shape> axis_by_axis(const Operation& op, const Tensor& x) {
  if (x.dims.size() < 2 || x.dims.size() > axis_count) return {};
  Shape shape;
  shape[Axis::N] = op.graph.shape(x)[Axis::N];
  std::size_t axis = axis_count;
  for (std::size_t i = x.dims.size(); i-- > 1;)
    (i == op.channel_axis(x) ? shape[Axis::C] : shape.extent[--axis]) = x.dims[i];
  return shape == op.graph.shape(x) ? std::optional(shape) : std::nullopt;
}

/// Adds a layer that applies `function` to the node's two inputs. Along any axis but the samples',
/// an input of extent 1 is broadcast.
void of_two(const Operation& op, BinaryFunction function) {
  const Tensor a = op.tensor(0), b = op.tensor(1);
  const std::optional<Shape> of_a = axis_by_axis(op, a), of_b = axis_by_axis(op, b);
  const bool alike = a.dims == b.dims && op.graph.shape(a) == op.graph.shape(b);
  need(a.channels_last == b.channels_last && a.dims.size() == b.dims.size() &&
           (alike || (of_a && of_b)),
       fmt::format("its inputs' axes do not correspond: ({}) and ({})", fmt::join(a.dims, ", "),
                   fmt::join(b.dims, ", ")));
  Tensor made = a;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    need(a.dims[i] == b.dims[i] || (i > 0 && std::min(a.dims[i], b.dims[i]) == 1),
         fmt::format("the extents {} and {} along one axis cannot be broadcast", a.dims[i],
                     b.dims[i]));
    made.dims[i] = std::max(a.dims[i], b.dims[i]);
  }
  Shape output = op.graph.shape(a);
  for (const Axis axis : all_axes) output[axis] = std::max(output[axis], op.graph.shape(b)[axis]);
  Draft draft{op.node.name(), function, {a.draft, b.draft}, output};
  made.draft = op.graph.add(std::move(draft), 2).draft;
  made.alone = true;
  op.output(made);
}

std::vector<Tensor> all_alike(const Operation& op) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.node.inputs(); ++i) inputs.push_back(op.tensor(i));
  for (const Tensor& x : inputs)
    need(x.dims == inputs[0].dims && x.channels_last == inputs[0].channels_last &&
             op.graph.shape(x) == op.graph.shape(inputs[0]),
         fmt::format("its inputs must have equal shapes, but these are ({}) and ({})",
                     fmt::join(inputs[0].dims, ", "), fmt::join(x.dims, ", ")));
  return inputs;
}

}  // namespace

std::optional<PointwiseFunction> pointwise_function(const Node& node) {
  const auto is_row = [&](PointwiseFunction function) {
    const PointwiseRow row = row_of(function);
    const auto& [attribute, usual, value] = row.onnx_mode;
    return !row.onnx.empty() && row.onnx == node.op() &&
           (attribute.empty() || node.text(std::string(attribute), std::string(usual)) == value);
  };
  const auto* const found = std::ranges::find_if(all_pointwise_functions, is_row);
  return found == all_pointwise_functions.end() ? std::nullopt : std::optional(*found);
}

void pointwise(const Operation& op) {
  const PointwiseFunction function = *pointwise_function(op.node);
  Json attributes = Json::object();
  for (const auto& [name, onnx, usual, least] : row_of(function).constants) {
    const double value = tidy(op.node.number(std::string(onnx), usual));
    need(value >= least,
         fmt::format("its attribute {} is {}, expected at least {}", onnx, value, least));
    attributes[std::string(name)] = value;
  }
  op.point_wise(function, {op.tensor(0)}, attributes);
}

void identity(const Operation& op) { op.output(op.tensor(0)); }

void prelu(const Operation& op) {
  const Tensor x = op.tensor(0);
  const Constant slope = op.constant(1);
  const std::int64_t channels = op.channels(x);
  const bool first =
      slope.elements() == channels &&
      slope.extents().size() == 1;  // before opset 7 a list had one slope per channel
  const Constant slopes = op.opset < 7 && first ? slope : per_channel(op, slope, x);
  Json attributes = Json::object();
  if (slopes.elements() == 1 && channels > 1) attributes["one_slope"] = true;
  op.point_wise(LayerKind::PReLU, {x}, attributes,
                {op.parameter("slope", {slopes.elements()}, slopes, 1)});
}

void clip(const Operation& op) {
  const auto low = op.scalar("min", 1), high = op.scalar("max", 2);
  Json attributes = Json::object();
  constexpr double none = std::numeric_limits<float>::max();  // old exports write it for "no limit"
  if (low && *low > -none * 0.999) attributes["min"] = *low;
  if (high && *high < none * 0.999) attributes["max"] = *high;
  need(!low || !high || *low <= *high, "its minimum is above its maximum");
  if (attributes.empty()) return identity(op);
  op.point_wise(PointwiseFunction::Clip, {op.tensor(0)}, attributes);
}

bool is_over_channels(const Operation& op) {
  const Tensor x = op.tensor(0);
  const std::int64_t rank = std::ssize(x.dims),
                     axis = op.node.integer("axis", op.opset >= 13 ? -1 : 1);
  if (axis < -rank || axis >= rank || !op.keeps_channels(x)) return false;
  const bool at_channels =
      static_cast<std::size_t>(axis < 0 ? axis + rank : axis) == op.channel_axis(x);
  return at_channels && (op.opset >= 13 || op.channel_axis(x) + 1 == x.dims.size() ||
                         op.positions(x) == 1);  // before opset 13 later axes were included too
}

void softmax(const Operation& op) {
  need(op.node.op() == "Softmax", "a LogSoftmax is possible only at the model's end");
  need(is_over_channels(op), "expected a softmax over the channels alone, found other axes");
  op.point_wise(LayerKind::Softmax, {op.tensor(0)});
}

void dropout(const Operation& op) {
  const double ratio = op.scalar("ratio", 1).value_or(0.5);
  need(ratio >= 0 && ratio < 1,
       fmt::format("expected a ratio of at least 0 and below 1, found {}", ratio));
  if (ratio == 0) return identity(op);
  op.point_wise(LayerKind::Dropout, {op.tensor(0)}, {{"probability", ratio}});
}

void add(const Operation& op) {
  if (op.node.inputs() == 1) return identity(op);
  if (reads_one_constant(op)) return with_constant(op);
  op.point_wise(LayerKind::Add, all_alike(op));
}

void subtract(const Operation& op) {
  if (reads_one_constant(op)) return with_constant(op);
  of_two(op, BinaryFunction::Subtract);
}

namespace {

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

std::optional<PointwiseFunction> gated_function(const Graph& graph, const Tensor& x,
                                                const Tensor& gate) {
  using enum PointwiseFunction;
  static const std::vector<Gated> all{
      {Square, {}}, {Silu, {Sigmoid}}, {HardSwish, {HardSigmoid}}, {Mish, {Tanh, Softplus}}};
  for (const Gated& gated : all)
    if (leads_to(graph, x, gate, gated)) return gated.function;
  return {};
}

}  // namespace

void multiply(const Operation& op) {
  if (reads_one_constant(op)) return with_constant(op);
  const Tensor a = op.tensor(0), b = op.tensor(1);
  for (const auto& [x, gate] : {std::pair{a, b}, {b, a}})
    if (const auto function = gated_function(op.graph, x, gate))
      return op.point_wise(*function, {x});
  of_two(op, BinaryFunction::Multiply);
}

void power(const Operation& op) {
  const std::optional<double> exponent = op.scalar("", 1);
  need(exponent && (*exponent == 2 || *exponent == 1 || *exponent == 0.5),
       "expected the constant 2, 1 or 0.5 as the exponent");
  if (*exponent == 1) return identity(op);
  op.point_wise(*exponent == 2 ? PointwiseFunction::Square : PointwiseFunction::Sqrt,
                {op.tensor(0)});
}

void divide(const Operation& op) {
  need(reads_one_constant(op), "expected a constant as the divisor, found a computed tensor");
  with_constant(op);
}

void concat(const Operation& op) {
  if (op.node.inputs() == 1) return identity(op);
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.node.inputs(); ++i) inputs.push_back(op.tensor(i));
  const Tensor& first = inputs[0];
  const auto axis =
      static_cast<std::size_t>(from_front({op.node.integer("axis", 1)}, first.dims.size())[0]);
  if (!op.keeps_channels(first) || op.channel_axis(first) != axis)
    return concat_positions(op, inputs, axis);
  Shape output = op.graph.shape(first);
  output[Axis::C] = 0;
  Draft draft{op.node.name(), LayerKind::Concat, {}, {}};
  for (const Tensor& x : inputs) {
    need(op.keeps_channels(x) && op.channel_axis(x) == axis &&
             x.channels_last == first.channels_last,
         "expected a concatenation along the channels, found another axis");
    Shape expected = op.graph.shape(first);
    expected[Axis::C] = op.channels(x);
    need(op.graph.shape(x) == expected,
         "the tensors to concatenate differ in more than their channels");
    output[Axis::C] += op.channels(x);
    draft.inputs.push_back(x.draft);
  }
  draft.output = output;
  Tensor made = first;
  made.draft = op.graph.add(std::move(draft), 2).draft;
  made.dims[axis] = output[Axis::C];
  made.alone = true;
  op.output(made);
}

void element_wise(const Operation& op) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.node.inputs(); ++i)
    if (op.given(i) && !op.is_constant(i)) inputs.push_back(op.tensor(i));
  need(!inputs.empty(), "expected a computed input, found only constants");
  const auto alike = [&](const Tensor& x) {
    return op.graph.shape(x) == op.graph.shape(inputs[0]);
  };
  const bool joins_them = inputs.size() > 1 && std::all_of(inputs.begin(), inputs.end(), alike);
  op.point_wise(joins_them ? LayerType(LayerKind::Add) : LayerType(PointwiseFunction::Clip),
                joins_them ? inputs : std::vector<Tensor>{inputs[0]});
}

}  // namespace stratplan::interop
