// Import of element-wise operators (pointwise functions, dropout, arithmetic), softmax, and
// concatenation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {

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
  op.point_wise(function, {op.any(0)}, attributes);
}

void identity(const Operation& op) { op.output(op.any(0)); }

void prelu(const Operation& op) {
  const Tensor x = op.with_channels(0);
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
  op.point_wise(PointwiseFunction::Clip, {op.any(0)}, attributes);
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
  const Tensor x = op.any(0);
  if (x.view.empty() && x.unrepeated.empty() && is_over_channels(op))
    return op.point_wise(LayerKind::Softmax, {x});
  const auto rank = std::ssize(x.dims);
  const std::int64_t axis =
      from_front({op.node.integer("axis", op.opset >= 13 ? -1 : 1)}, x.dims.size())[0];
  need(axis > 0 && (op.opset >= 13 || axis + 1 == rank),
       "expected a softmax along one axis of each sample");
  softmax_along(op, x.unrepeated.empty() ? x : op.tensor(0), axis);
}

void dropout(const Operation& op) {
  const double ratio = op.scalar("ratio", 1).value_or(0.5);
  need(ratio >= 0 && ratio < 1,
       fmt::format("expected a ratio of at least 0 and below 1, found {}", ratio));
  if (ratio == 0) return identity(op);
  op.point_wise(LayerKind::Dropout, {op.any(0)}, {{"probability", ratio}});
}

/// Whole exponents are products, since x may be negative. Other exponents need x above 0, as they
/// do in the model.
void power(const Operation& op) {
  const std::optional<double> exponent = op.scalar("", 1);
  need(exponent && std::isfinite(*exponent), "expected a constant as the exponent");
  const Tensor x = op.any(0);
  const double whole = std::abs(*exponent);
  constexpr double most_factors = 8;
  if (*exponent == 0.5) return op.point_wise(PointwiseFunction::Sqrt, {x});
  if (whole != std::floor(whole) || whole > most_factors || whole == 0)
    return op.point_wise(PointwiseFunction::Power, {x}, {{"exponent", *exponent}});
  Tensor product = whole > 1 ? op.alike(PointwiseFunction::Square, {x}) : x;
  for (double factors = 2; factors < whole; ++factors)
    product = op.alike(BinaryFunction::Multiply, {product, x});
  if (*exponent < 0) return op.point_wise(PointwiseFunction::Reciprocal, {product});
  op.output(product);
}

/// Neg.
void negative(const Operation& op) { op.output(with_constants(op, op.any(0), {{-1}, {0}})); }

namespace {

/// Returns the inputs, of which all axes but `axis` are equal.
std::vector<Tensor> inputs_along(const Operation& op, std::size_t& axis) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < op.node.inputs(); ++i) inputs.push_back(op.with_channels(i));
  const Tensor& first = inputs[0];
  axis = static_cast<std::size_t>(from_front({op.node.integer("axis", 1)}, first.dims.size())[0]);
  for (const Tensor& x : inputs) {
    Extents dims = x.dims;
    need(dims.size() == first.dims.size() && x.channels_last == first.channels_last,
         "its inputs' axes do not correspond");
    dims[axis] = first.dims[axis];
    need(dims == first.dims, "the tensors to concatenate differ in more than one axis");
  }
  return inputs;
}

/// Whether the axis holds channels, and no axis before it but the samples' holds anything. Another
/// tensor's channels can then follow, as if the axis were that of all channels.
bool leads_channels(const Operation& op, const Tensor& x, std::size_t axis) {
  if (x.channels_last) return op.keeps_channels(x) && axis == op.channel_axis(x);
  const std::vector<Factors> axes = op.factors(x);
  const auto is_empty = [](const Factors& factors) { return factors.empty(); };
  return std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(axis), is_empty) &&
         std::ranges::all_of(axes[axis],
                             [](const Factor& factor) { return factor.axis == Axis::C; });
}

/// Defines the output as the stacks one behind the other.
void concatenate_stacks(const Operation& op) {
  Stack all;
  for (int i = 0; i < op.node.inputs(); ++i) {
    const Stack stack = op.graph.stack(op.node.input(i));
    need(!stack.tensors.empty() && op.node.integer("axis", 1) == 0,
         "expected tensors that are stacked along the first axis");
    all.tensors.insert(all.tensors.end(), stack.tensors.begin(), stack.tensors.end());
  }
  for (const Tensor& tensor : all.tensors)
    need(op.graph.shape(tensor) == op.graph.shape(all.tensors[0]) &&
             tensor.dims == all.tensors[0].dims,
         "expected stacked tensors of one shape");
  op.graph.define_stack(op.node.output(0), std::move(all));
}

/// Defines the output as a stack of the inputs, if they hold nothing along the axis. Returns
/// whether they do.
bool stacks(const Operation& op, std::vector<Tensor> inputs, std::size_t axis) {
  for (Tensor& x : inputs) {
    if (op.is_image(x) || x.dims[axis] != 1 || op.graph.shape(x) != op.graph.shape(inputs[0]))
      return false;
    x.dims.erase(x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  op.graph.define_stack(op.node.output(0), {std::move(inputs), axis});
  return true;
}

}  // namespace

void concat(const Operation& op) {
  if (!op.graph.stack(op.node.input(0)).tensors.empty()) return concatenate_stacks(op);
  if (op.node.inputs() == 1) return identity(op);
  std::size_t axis = 0;
  const std::vector<Tensor> inputs = inputs_along(op, axis);
  need(axis > 0, "it joins samples");
  if (!std::ranges::all_of(inputs, [&](const Tensor& x) { return leads_channels(op, x, axis); })) {
    if (!stacks(op, inputs, axis)) concat_positions(op, inputs, axis);
    return;
  }
  Shape output = op.graph.shape(inputs[0]);
  output[Axis::C] = 0;
  for (const Tensor& x : inputs) {
    Shape expected = op.graph.shape(inputs[0]);
    expected[Axis::C] = op.channels(x);
    need(op.graph.shape(x) == expected,
         "the tensors to concatenate differ in more than their channels");
    output[Axis::C] += op.channels(x);
  }
  Tensor made = inputs[0];
  made.draft = op.made(LayerKind::Concat, inputs, output).draft;
  made.dims[axis] = 0;
  for (const Tensor& x : inputs) made.dims[axis] += x.dims[axis];
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
  op.graph.drafts.back().opaque = op.node.op();
}

}  // namespace stratplan::interop
