// Sums, differences, products and quotients of a layer's output and a constant. A parameter of the
// model becomes a parameter of a layer. Any other constant stays a constant: it never merges into
// parameters, because training would change it with them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// The node's constant input, as one number or one number per channel of x.
struct Operand {
  int side;  ///< the input's index
  Tensor x;
  Constant values;
  std::string name;  ///< of the constant in the model

  bool is_stored() const { return values.origin() == Origin::Stored; }
};

bool adds(const Operation& op) { return op.node.op() == "Add" || op.node.op() == "Sum"; }
bool multiplies(const Operation& op) { return op.node.op() == "Mul"; }

/// Whether the layer behind x lacks the parameter with which the node would complete it: scale or
/// shift of a normalization. The scale comes first.
bool completes_normalization(const Operation& op, const Tensor& x) {
  Draft& maker = op.graph.drafts[x.draft];
  if (!x.alone || !has_statistics(maker.type.kind) || maker.find("shift")) return false;
  return adds(op) || (multiplies(op) && !maker.find("scale"));
}

/// Whether the node completes the layer behind x, a contraction, with a bias.
bool completes_contraction(const Operation& op, const Tensor& x) {
  Draft& maker = op.graph.drafts[x.draft];
  return x.alone && adds(op) && is_contraction(maker.type.kind) && !maker.find("bias");
}

/// Describes what the node does with the operand: "gamma, a factor of /Mul (Mul),".
std::string described(const Operation& op, const Operand& operand) {
  const char* part = multiplies(op)          ? "a factor of"
                     : op.node.op() == "Div" ? "the divisor of"
                     : op.node.op() == "Sub" ? "an operand of"
                                             : "a summand of";
  return fmt::format("{}, {} {} ({}),", operand.name, part, op.node.name(), op.node.op());
}

/// Decides the operand's part in training if the user does not.
Learning guessed(const Operation& op, const Operand& operand) {
  Decisions& decisions = op.graph.decisions();
  const auto constant = [&](const std::string& because, bool trainable) {
    decisions.report(
        fmt::format("{} is a constant, because {}{}", described(op, operand), because,
                    trainable ? fmt::format("; --trainable {} changes this", operand.name) : ""));
    return Learning::Constant;
  };
  if (operand.values.origin() == Origin::Literal)
    return op.graph.has_literal_weights && completes_contraction(op, operand.x) &&
                   operand.values.elements() == op.channels(operand.x)
               ? Learning::Trained
               : Learning::Constant;
  if (operand.values.origin() == Origin::Computed)
    return constant(
        fmt::format("it is computed from {}", fmt::join(operand.values.tensors(), ", ")), false);
  const bool completes =
      completes_normalization(op, operand.x) || completes_contraction(op, operand.x);
  if (is_made_by_exporter(operand.values) && operand.values.elements() == 1)
    return Learning::Constant;
  if (!adds(op) && !multiplies(op))
    return constant("layers only add and multiply by parameters", false);
  if (!completes && !op.graph.drafts[operand.x.draft].learned)
    return constant("no layer with parameters comes before it", true);
  if (is_made_by_exporter(operand.values)) {
    if (!completes_normalization(op, operand.x))
      return constant("the exporter made it, perhaps by folding constants", true);
    decisions.report(fmt::format(
        "{} is trained as a parameter of the normalization before it; --constant {} changes this",
        described(op, operand), operand.name));
  } else if (!completes) {
    decisions.report(fmt::format("{} is trained; --constant {} or --freeze {} changes this",
                                 described(op, operand), operand.name, operand.name));
  }
  return Learning::Trained;
}

Learning part_of(const Operation& op, const Operand& operand) {
  const auto asked = op.graph.decisions().asked({operand.name, operand.values.tensor()});
  if (!asked) return guessed(op, operand);
  if (*asked == Learning::Trained) {
    need(operand.values.origin() != Origin::Computed,
         fmt::format("{} cannot be trained, because it is computed from {}", operand.name,
                     fmt::join(operand.values.tensors(), ", ")));
    need(adds(op) || multiplies(op),
         fmt::format("{} cannot be trained: layers only add and multiply by parameters",
                     operand.name));
  }
  const bool fits = operand.values.elements() == op.channels(operand.x) && operand.is_stored() &&
                    (adds(op) || multiplies(op));
  return *asked == Learning::Frozen && !fits ? Learning::Constant : *asked;
}

/// States which of scale and shift a normalization has.
void name_affine(Draft& draft) {
  const bool scale = draft.find("scale") != nullptr, shift = draft.find("shift") != nullptr;
  draft.attributes["affine"] = scale ? (shift ? "both" : "scale") : (shift ? "shift" : "none");
  if (scale && shift) draft.attributes.erase("affine");
}

/// Defines the output as x plus or times a parameter. The layer behind x takes the parameter if it
/// lacks one at this place. Else a depthwise 1x1 convolution takes it.
void with_parameter(const Operation& op, const Operand& operand, Learning learning) {
  const std::int64_t channels = op.channels(operand.x);
  need(operand.values.elements() == channels,
       fmt::format("no layer trains {}, one number for all {} channels; --constant {} keeps its "
                   "value",
                   operand.name, channels, operand.name));
  Draft& maker = op.graph.drafts[operand.x.draft];
  if (completes_normalization(op, operand.x)) {
    maker.parameters.push_back(
        {adds(op) ? "shift" : "scale", {channels}, operand.values, learning});
    maker.learned = true;
    name_affine(maker);
    return op.output(operand.x);
  }
  if (completes_contraction(op, operand.x)) {
    maker.attributes["bias"] = true;
    maker.parameters.push_back({"bias", {channels}, operand.values, learning});
    return op.output(operand.x);
  }
  const Extents shape{channels, 1, 1, 1, 1};
  Json attributes{{"filters", channels}, {"kernel", 1}};
  if (channels > 1) attributes["groups"] = channels;
  std::vector<Parameter> parameters;
  if (adds(op)) {
    const Constant ones = op.graph.constants().of(
        {channels}, std::vector<float>(static_cast<std::size_t>(channels), 1));
    attributes["bias"] = true;
    parameters.push_back({"weights", shape, ones, Learning::Constant});
    parameters.push_back({"bias", {channels}, operand.values, learning});
  } else {
    parameters.push_back({"weights", shape, operand.values, learning});
  }
  op.point_wise(LayerKind::Convolution, {operand.x}, attributes, std::move(parameters));
  op.graph.drafts.back().is_arithmetic = true;
}

/// Applies `combine` to two lists, of which one may have one number for all channels.
template <class Combine>
std::vector<double> combined(const std::vector<double>& a, const std::vector<double>& b,
                             Combine combine) {
  std::vector<double> all(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = combine(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  if (std::all_of(all.begin(), all.end(), [&](double each) { return each == all[0]; }))
    all.resize(1);
  return all;
}

/// Returns the constants of the node's function of x.
Fixed function_of(const Operation& op, const Operand& operand) {
  need(operand.values.elements() <= most_in_document,
       fmt::format("{} has {} elements, but a constant of a network has at most {}", operand.name,
                   operand.values.elements(), most_in_document));
  const std::vector<float> floats = operand.values.floats();
  const std::vector<double> values =
      combined({floats.begin(), floats.end()}, {1}, std::multiplies<>());
  Fixed made;
  if (multiplies(op)) made.factor = values;
  if (adds(op)) made.summand = values;
  if (op.node.op() == "Div" && operand.side == 0) made.factor = values;
  if (op.node.op() == "Div" && operand.side == 1)
    made.factor = combined({1}, values, std::divides<>());
  if (op.node.op() == "Sub" && operand.side == 0) made = {{-1}, values};
  if (op.node.op() == "Sub" && operand.side == 1)
    made.summand = combined({0}, values, std::minus<>());
  for (const auto* list : {&made.factor, &made.summand})
    for (const double value : *list)
      need(std::isfinite(static_cast<float>(value)),
           fmt::format("{} gives a factor or summand that is not finite", operand.name));
  return made;
}

}  // namespace

Tensor with_constants(const Operation& op, Tensor x, const Fixed& by) {
  const auto all = [](const std::vector<double>& list, double value) {
    return std::all_of(list.begin(), list.end(), [&](double each) { return each == value; });
  };
  if (all(by.factor, 1) && all(by.summand, 0)) return x;
  Draft& maker = op.graph.drafts[x.draft];
  if (x.alone && maker.fixed) {
    maker.fixed->factor = combined(maker.fixed->factor, by.factor, std::multiplies<>());
    maker.fixed->summand = combined(combined(maker.fixed->summand, by.factor, std::multiplies<>()),
                                    by.summand, std::plus<>());
    if (all(maker.fixed->factor, 1) && all(maker.fixed->summand, 0)) {
      x.draft = maker.inputs[0];  // 2 x / 2, say: nothing reads the layer then
      x.alone = false;
    }
    return x;
  }
  Draft draft{op.node.name(), PointwiseFunction::Linear, {x.draft}, op.graph.shape(x)};
  draft.fixed = by;
  draft.is_arithmetic = true;
  x.draft = op.graph.add(std::move(draft), 2).draft;
  x.alone = true;
  return x;
}

void settle_constants(Graph& graph, Draft& draft) {
  if (!draft.fixed) return;
  const auto [factor, summand] = *draft.fixed;
  const std::int64_t channels = draft.output[Axis::C];
  const auto number = [](double value) {
    const auto rounded = static_cast<float>(value);
    return static_cast<double>(rounded) == value ? tidy(value) : value;
  };
  draft.attributes = Json::object();
  if (factor.size() == 1 && summand.size() == 1) {
    draft.type = PointwiseFunction::Linear;
    if (factor[0] != 1) draft.attributes["factor"] = number(factor[0]);
    if (summand[0] != 0) draft.attributes["summand"] = number(summand[0]);
    return;
  }
  const auto parameter = [&](const char* role, Extents shape, const std::vector<double>& list) {
    std::vector<float> values(list.begin(), list.end());
    values.resize(static_cast<std::size_t>(channels), values[0]);
    draft.parameters.push_back({role, std::move(shape),
                                graph.constants().of({channels}, std::move(values)),
                                Learning::Constant});
  };
  draft.type = LayerKind::Convolution;
  draft.attributes = {{"filters", channels}, {"kernel", 1}};
  if (channels > 1) draft.attributes["groups"] = channels;
  parameter("weights", {channels, 1, 1, 1, 1}, factor);
  if (summand.size() == 1 && summand[0] == 0) return;
  draft.attributes["bias"] = true;
  parameter("bias", {channels}, summand);
}

bool reads_one_constant(const Operation& op) {
  return op.node.inputs() == 2 && (op.is_constant(0) || op.is_constant(1));
}

void with_constant(const Operation& op) {
  const int side = op.is_constant(0) ? 0 : 1;
  const bool of_channels = op.constant(side).elements() > 1;
  const Tensor x = of_channels ? op.with_channels(1 - side) : op.tensor(1 - side);
  const Operand operand{side, x, per_channel(op, op.constant(side), x), op.node.input(side)};
  const Learning learning = part_of(op, operand);
  if (op.node.op() == "Div" && side == 0) {
    need(learning == Learning::Constant,
         fmt::format("no layer trains {}, which it divides", operand.name));
    op.graph.read_as_constant(op.node, operand.values);
    const Tensor inverse = op.alike(PointwiseFunction::Reciprocal, {x});
    return op.output(with_constants(op, inverse, function_of(op, operand)));
  }
  if (learning == Learning::Constant) {
    op.graph.read_as_constant(op.node, operand.values);
    return op.output(with_constants(op, x, function_of(op, operand)));
  }
  with_parameter(op, operand, learning);
}

}  // namespace stratplan::interop
