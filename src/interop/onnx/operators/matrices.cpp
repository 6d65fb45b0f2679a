// Products with a matrix of weights: fully connected layers, and convolutions of extent 1.
#include <fmt/format.h>

#include <cmath>

#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// Whether a product with a matrix acts on the channels of each position.
bool acts_on_positions(const Tensor& x) { return x.channels_last && x.dims.size() > 2; }

/// Adds a convolution of extent 1 that multiplies the channels of each position by a matrix with a
/// row for each channel.
void channel_product(const Operation& op, const Tensor& x, const Constant& matrix) {
  const Extents& extents = matrix.extents();
  need(op.keeps_channels(x) && extents.size() == 2 && extents[0] == op.channels(x) &&
           extents[1] >= 1,
       "expected the channels of each position times one matrix of weights");
  const std::int64_t filters = extents[1];
  Shape output = op.graph.shape(x);
  output[Axis::C] = filters;
  Draft draft{
      op.node.name(),
      LayerKind::Convolution,
      {x.draft},
      output,
      {{"filters", filters}, {"kernel", 1}},
      {op.parameter("weights", {filters, extents[0], 1, 1, 1}, transposed(matrix, {1, 0}), 1)}};
  Tensor made = x;
  made.draft = op.graph.add(std::move(draft), 2).draft;
  made.dims.back() = filters;
  made.alone = true;
  op.output(made);
}

void fully_connected(const Operation& op, const Tensor& x, const Constant& matrix, bool turned,
                     std::vector<Parameter> bias) {
  const Extents& extents = matrix.extents();
  need(x.dims.size() == 2 && extents.size() == 2,
       "expected (samples, elements) times one matrix of weights");
  const std::int64_t products = extents[turned ? 0 : 1], filters = extents[turned ? 1 : 0];
  need(products == x.dims[1] && filters >= 1,
       fmt::format("a matrix of {} by {} does not fit {} elements per sample", extents[0],
                   extents[1], x.dims[1]));
  const Shape shape = op.graph.shape(x);
  Shape output;
  output[Axis::C] = filters;
  Json attributes{{"filters", filters}};
  if (!bias.empty()) attributes["bias"] = true;
  Parameter weights = op.parameter(
      "weights", {filters, shape[Axis::C], shape[Axis::D], shape[Axis::H], shape[Axis::W]},
      turned ? transposed(matrix, {1, 0}) : matrix, 1);
  weights.channels_last = x.channels_last && op.channels(x) > 1 && op.positions(x) > 1;
  bias.insert(bias.begin(), std::move(weights));
  op.layer(LayerKind::FullyConnected, x, output, attributes, std::move(bias));
}

/// Returns the bias of a Gemm, unless it is zero.
std::vector<Parameter> bias_of(const Operation& op, std::int64_t filters) {
  const auto bias = op.optional_constant(2);
  const auto beta = static_cast<float>(op.node.number("beta", 1));
  if (!bias || beta == 0 || (bias->origin() == Origin::Literal && is_filled(*bias, 0.0F)))
    return {};
  const bool aligned =
      bias->elements() == filters && !bias->extents().empty() && bias->extents().back() == filters;
  need(aligned || (bias->elements() == 1 && bias->origin() == Origin::Literal),
       "expected one bias for each channel, found another shape");
  if (aligned && beta == 1) return {op.parameter("bias", {filters}, *bias, 2)};
  need(bias->origin() == Origin::Literal,
       fmt::format("its bias is multiplied by beta = {}, which no layer does in training", beta));
  const auto scaled = [beta, filters](OperandValues read) {
    std::vector<float> values = std::get<std::vector<float>>(*read[0]);
    values.resize(static_cast<std::size_t>(filters), values.at(0));
    for (float& value : values) value *= beta;
    return Values(std::move(values));
  };
  return {
      op.parameter("bias", {filters}, computed({filters}, false, {as_floats(*bias)}, scaled), 2)};
}

}  // namespace

void gemm(const Operation& op) {
  const Tensor x = op.tensor(0);
  need(op.node.integer("transA", 0) == 0,
       "expected samples along rows, but transA puts them along columns");
  const Constant matrix = op.constant(1);
  const bool turned = op.node.integer("transB", 0) == 0;
  need(matrix.extents().size() == 2, "expected (samples, elements) times one matrix of weights");
  const std::int64_t filters = matrix.extents()[turned ? 1 : 0];
  std::vector<Parameter> bias = bias_of(op, filters);
  const double alpha = op.node.number("alpha", 1);
  need(std::isfinite(alpha), "expected a finite alpha");
  fully_connected(op, with_constants(op, x, {{alpha}, {0}}), matrix, turned, std::move(bias));
}

void matrix_product(const Operation& op) {
  need(!op.is_constant(0),
       "expected samples on the left and weights on the right, found weights on the left");
  if (!op.is_constant(1)) return product_with_vector(op);
  const Tensor x = op.tensor(0);
  acts_on_positions(x) ? channel_product(op, x, op.constant(1))
                       : fully_connected(op, x, op.constant(1), true, {});
}

}  // namespace stratplan::interop
