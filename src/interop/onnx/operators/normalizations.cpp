// Normalizations, with statistics over samples and positions (batch), positions (instance), or
// positions and groups of channels (group).
#include <fmt/format.h>

#include <cmath>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

const Constant& checked(const char* role, const Constant& values, std::int64_t channels) {
  need(values.elements() == channels,
       fmt::format("its {} has {} elements, expected one for each of {} channels", role,
                   values.elements(), channels));
  return values;
}

/// Returns a constant with one value per channel. `values` has one value per group or per channel.
Constant of_groups(const char* role, const Constant& values, std::int64_t groups,
                   std::int64_t channels) {
  if (values.elements() == channels) return values;
  need(values.elements() == groups,
       fmt::format("its {} has {} elements, expected one for each of {} groups or {} channels",
                   role, values.elements(), groups, channels));
  const auto spread = [each = channels / groups](OperandValues read) {
    std::vector<float> all;
    for (const float value : std::get<std::vector<float>>(*read[0]))
      all.insert(all.end(), static_cast<std::size_t>(each), value);
    return Values(std::move(all));
  };
  return computed({channels}, false, {as_floats(values)}, spread);
}

/// Whether the node's input has the value `neutral` everywhere and is no parameter of the model. A
/// normalization without parameters has such a scale (1) and shift (0). No parameter has one value
/// for each of several groups of channels.
bool is_neutral(const Operation& op, int input, float neutral, std::int64_t channels) {
  const Constant values = op.constant(input);
  const bool may_be_parameter = values.origin() == Origin::Literal ? op.graph.has_literal_weights
                                                                   : !is_made_by_exporter(values);
  return (!may_be_parameter || values.elements() != channels) && is_filled(values, neutral) &&
         op.graph.decisions().asked({op.node.input(input), values.tensor()}) != Learning::Trained;
}

/// Returns the parameters of a normalization that the model has, and says in `attributes` which it
/// has. `of`: returns the values of an input for each channel.
template <class Of>
std::vector<Parameter> scale_and_shift(const Operation& op, std::int64_t channels, Json& attributes,
                                       const Of& of) {
  std::vector<Parameter> parameters;
  const bool scale = !is_neutral(op, 1, 1, channels),
             shift = op.given(2) && !is_neutral(op, 2, 0, channels);
  if (scale)
    parameters.push_back(op.parameter("scale", {channels}, of("scale", op.constant(1)), 1));
  if (shift)
    parameters.push_back(op.parameter("shift", {channels}, of("shift", op.constant(2)), 2));
  if (!scale || !shift) attributes["affine"] = scale ? "scale" : shift ? "shift" : "none";
  return parameters;
}

Json epsilon_of(const Operation& op) {
  const double epsilon = tidy(op.node.number("epsilon", 1e-5));
  need(epsilon > 0, fmt::format("expected an epsilon above zero, found {}", epsilon));
  return epsilon == 1e-5 ? Json::object() : Json{{"epsilon", epsilon}};
}

/// Adds a normalization in which the channels of each of `groups` groups share mean and variance.
/// With as many groups as channels, the layer is an instance normalization.
void normalize_groups(const Operation& op, const Tensor& x, std::int64_t groups) {
  const std::int64_t channels = op.channels(x);
  need(groups >= 1 && channels % groups == 0,
       fmt::format("{} groups do not divide {} channels", groups, channels));
  Json attributes = epsilon_of(op);
  if (groups != channels) attributes["groups"] = groups;
  const auto of = [&](const char* role, const Constant& values) {
    return of_groups(role, values, groups, channels);
  };
  auto parameters = scale_and_shift(op, channels, attributes, of);
  op.point_wise(groups == channels ? LayerKind::InstanceNorm : LayerKind::GroupNorm, {x},
                attributes, std::move(parameters));
}

/// Returns the weight of a step's statistics in the running ones. Throws if no layer keeps running
/// statistics in this way.
double momentum_of(const Operation& op) {
  const double momentum = tidy(op.node.number("momentum", 0.9));
  need(momentum >= 0 && momentum <= 1,
       fmt::format("expected a momentum from 0 to 1, found {}", momentum));
  need(momentum > 0,
       "its momentum is 0, as PyTorch exports momentum=None: no layer keeps an average over all "
       "steps");
  need(momentum < 1, "its momentum is 1, so training would never change its running statistics");
  return std::round((1 - momentum) * 1e9) / 1e9;
}

}  // namespace

void batch_normalization(const Operation& op) {
  const Tensor x = op.with_channels(0);
  need(op.keeps_channels(x), "expected an input with an axis of channels");
  need(op.node.integer("spatial", 1) == 1,
       "statistics for each position (spatial = 0) are not supported");
  const std::int64_t channels = op.channels(x);
  const bool trains = is_exported_for_training(op.node, op.opset);
  Json attributes = epsilon_of(op);
  const auto of = [&](const char* role, const Constant& values) {
    return checked(role, values, channels);
  };
  auto parameters = scale_and_shift(op, channels, attributes, of);
  const bool keeps = !trains || (op.is_constant(3) && op.is_constant(4));
  attributes["momentum"] = keeps ? momentum_of(op) : 0.0;
  for (const auto& [role, input] : {std::pair{"running_mean", 3}, {"running_var", 4}})
    if (keeps)
      parameters.push_back(
          {role, {channels}, as_floats(checked(role, op.constant(input), channels))});
  op.point_wise(LayerKind::BatchNorm, {x}, attributes, std::move(parameters));
  op.graph.drafts.back().batch_statistics = trains;
}

bool is_exported_for_training(const Node& node, std::int64_t opset) {
  return opset >= 14 ? node.integer("training_mode", 0) != 0 : node.outputs() > 1;
}

/// PyTorch exports a group normalization as an InstanceNormalization of an input that is reshaped
/// to (N, groups, rest), so x.dims[1] is the number of groups.
void instance_normalization(const Operation& op) {
  const Tensor x = op.tensor(0);
  need(x.dims.size() >= 2 && !x.channels_last,
       "expected an input whose channels are not the last axis");
  normalize_groups(op, x, x.dims[1]);
}

void group_normalization(const Operation& op) {
  const Tensor x = op.tensor(0);
  need(op.keeps_channels(x) && !x.channels_last,
       "expected an input whose channels are the second axis");
  normalize_groups(op, x, op.node.integer("num_groups", 1));
}

void layer_normalization(const Operation& op) {
  const Tensor x = op.with_channels(0);
  const std::size_t rank = x.dims.size();
  const auto axis = static_cast<std::size_t>(from_front({op.node.integer("axis", -1)}, rank)[0]);
  need(op.keeps_channels(x) && axis == rank - 1 && axis == op.channel_axis(x),
       "expected a normalization over the channels of each position, which are the last axis");
  for (int output = 1; output < op.node.outputs(); ++output)
    need(!op.graph.readers.contains(op.node.output(output)),
         "no layer gives mean and variance as outputs");
  const std::int64_t channels = op.channels(x);
  Json attributes = epsilon_of(op);
  const auto of = [&](const char* role, const Constant& values) {
    return checked(role, values, channels);
  };
  auto parameters = scale_and_shift(op, channels, attributes, of);
  op.point_wise(LayerKind::LayerNorm, {x}, attributes, std::move(parameters));
}

void local_response_normalization(const Operation& op) {
  const Tensor x = op.tensor(0);
  need(op.keeps_channels(x), "expected an input with an axis of channels");
  const std::int64_t size = op.node.integer("size", 1);
  need(size >= 1 && size % 2 == 1,
       fmt::format("a sum over {} channels, expected an odd number", size));
  const double k = tidy(op.node.number("bias", 1)), alpha = tidy(op.node.number("alpha", 1e-4)),
               beta = tidy(op.node.number("beta", 0.75));
  need(k > 0 && alpha >= 0 && beta >= 0,
       "expected a bias above zero, and no alpha or beta below zero");
  op.point_wise(LayerKind::LocalResponseNorm, {x},
                {{"local_size", size}, {"alpha", alpha}, {"beta", beta}, {"k", k}});
}

}  // namespace stratplan::interop
