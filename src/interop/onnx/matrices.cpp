// Fully connected layers: products with a matrix of weights.
#include <fmt/format.h>

#include "interop/onnx/operators.hpp"

namespace stratplan::interop {
namespace {

/// Reorders the values of a matrix into weights (F, C, D, H, W), and multiplies them by `factor`. K
/// = C * D * H * W is the number of elements of one sample.
struct Weights {
  bool turned = false;  ///< the matrix is (K, F); false: (F, K)
  float factor = 1;
  std::int64_t filters, channels, positions;
  bool channels_last = false;  ///< K is ordered (D, H, W, C); false: (C, D, H, W)

  Values operator()(OperandValues read) const {
    const auto& from = std::get<std::vector<float>>(*read[0]);
    const std::int64_t products = channels * positions;
    std::vector<float> values(from.size());
    for (std::int64_t f = 0; f < filters; ++f)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < positions; ++p) {
          const std::int64_t k = channels_last ? p * channels + c : c * positions + p;
          values[static_cast<std::size_t>((f * channels + c) * positions + p)] =
              factor * from[static_cast<std::size_t>(turned ? k * filters + f : f * products + k)];
        }
    return values;
  }
};

void fully_connected(const Operation& op, const Tensor& x, const Constant& matrix, bool turned,
                     double alpha, std::vector<Parameter> bias) {
  const Extents& extents = matrix.extents();
  need(x.dims.size() == 2 && extents.size() == 2,
       "expected (samples, elements) times one matrix of weights");
  const std::int64_t products = extents[turned ? 0 : 1], filters = extents[turned ? 1 : 0];
  need(products == x.dims[1] && filters >= 1,
       fmt::format("a matrix of {} by {} does not fit {} elements per sample", extents[0],
                   extents[1], x.dims[1]));
  const Shape& shape = op.graph.shape(x);
  Shape output;
  output[Axis::C] = filters;
  Json attributes{{"filters", filters}};
  if (!bias.empty()) attributes["bias"] = true;
  const Weights weights{turned,         static_cast<float>(alpha), filters,
                        op.channels(x), op.positions(x),           x.channels_last};
  const Extents weights_shape{filters, shape[Axis::C], shape[Axis::D], shape[Axis::H],
                              shape[Axis::W]};
  bias.insert(bias.begin(), {"weights", weights_shape,
                             computed(weights_shape, false, {as_floats(matrix)}, weights)});
  op.layer(LayerKind::FullyConnected, x, output, attributes, std::move(bias));
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
  std::vector<Parameter> parameters;
  if (const auto bias = op.optional_constant(2)) {
    const bool aligned =
        bias->elements() == 1 || (bias->elements() == filters && !bias->extents().empty() &&
                                  bias->extents().back() == filters);
    need(aligned, "expected one bias for each channel, found another shape");
    const auto scaled = [beta = static_cast<float>(op.node.number("beta", 1))](OperandValues read) {
      std::vector<float> values = std::get<std::vector<float>>(*read[0]);
      for (float& value : values) value *= beta;
      return Values(std::move(values));
    };
    parameters.push_back(
        {"bias", {filters}, computed({filters}, false, {of_length(*bias, filters)}, scaled)});
  }
  fully_connected(op, x, matrix, turned, op.node.number("alpha", 1), std::move(parameters));
}

void matrix_product(const Operation& op) {
  need(!op.is_constant(0),
       "expected samples on the left and weights on the right, found weights on the left");
  fully_connected(op, op.tensor(0), op.constant(1), true, 1, {});
}

}  // namespace stratplan::interop
