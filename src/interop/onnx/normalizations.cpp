// Normalizations, with statistics over samples and positions (batch), positions (instance), or
// positions and groups of channels (group).
#include <fmt/format.h>

#include <cmath>

#include "interop/onnx/operators.hpp"

namespace stratplan::interop {
namespace {

Parameter of_channels(const char* name, const Constant& values, std::int64_t channels) {
  need(values.elements() == channels,
       fmt::format("its {} has {} elements, expected one for each of {} channels", name,
                   values.elements(), channels));
  return {name, {channels}, values};
}

/// Returns a parameter with one value per channel. `values` has one value per group or per channel.
Parameter of_groups(const char* name, const Constant& values, std::int64_t groups,
                    std::int64_t channels) {
  if (values.elements() == channels) return of_channels(name, values, channels);
  need(values.elements() == groups,
       fmt::format("its {} has {} elements, expected one for each of {} groups or {} channels",
                   name, values.elements(), groups, channels));
  const auto spread = [each = channels / groups](OperandValues read) {
    std::vector<float> all;
    for (const float value : std::get<std::vector<float>>(*read[0]))
      all.insert(all.end(), static_cast<std::size_t>(each), value);
    return Values(std::move(all));
  };
  return {name, {channels}, computed({channels}, false, {as_floats(values)}, spread)};
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
  op.point_wise(groups == channels ? LayerKind::InstanceNorm : LayerKind::GroupNorm, {x},
                attributes,
                {of_groups("scale", op.constant(1), groups, channels),
                 of_groups("shift", op.constant(2), groups, channels)});
}

}  // namespace

void batch_normalization(const Operation& op) {
  const Tensor x = op.tensor(0);
  need(op.keeps_channels(x), "expected an input with an axis of channels");
  need(op.node.integer("spatial", 1) == 1,
       "statistics for each position (spatial = 0) are not supported");
  const double momentum = tidy(op.node.number("momentum", 0.9));
  if (op.graph.running_momentum == 0 && momentum < 1)
    op.graph.running_momentum = std::round((1 - momentum) * 1e9) / 1e9;
  const std::int64_t channels = op.channels(x);
  op.point_wise(LayerKind::BatchNorm, {x}, epsilon_of(op),
                {of_channels("scale", op.constant(1), channels),
                 of_channels("shift", op.constant(2), channels),
                 of_channels("running_mean", op.constant(3), channels),
                 of_channels("running_var", op.constant(4), channels)});
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
