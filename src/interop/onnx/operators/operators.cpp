#include "interop/onnx/operators/operators.hpp"

#include <algorithm>

namespace stratplan::interop {
namespace {

using enum LayerKind;

/// An operator, the operator set of ONNX that brought it, and the layers that it may become. Views
/// become no layer of their own.
struct Row {
  const char* name;
  std::int64_t since;
  Translation translation;
  std::vector<LayerType> layers;
};

const std::vector<Row>& rows() {
  using enum PointwiseFunction;
  static const LayerType divide_by = BinaryFunction::Divide, subtracted = BinaryFunction::Subtract;
  static const std::vector<LayerType> moves{ChannelShuffle, DepthToSpace, SpaceToDepth};
  static const std::vector<Row> all{
      {"Conv", 1, convolution, {Convolution}},
      {"ConvTranspose", 1, transposed_convolution, {TransposedConvolution}},
      {"Gemm", 1, gemm, {FullyConnected}},
      {"MatMul",
       1,
       matrix_product,
       {FullyConnected, Convolution, BinaryFunction::Multiply, Reduce}},
      {"MaxPool", 1, max_pool, {MaxPool}},
      {"AveragePool", 1, average_pool, {AveragePool, GlobalAveragePool}},
      {"GlobalAveragePool", 1, global_average_pool, {GlobalAveragePool}},
      {"GlobalMaxPool", 1, global_max_pool, {MaxPool}},
      {"ReduceMean", 1, reduce_mean, {GlobalAveragePool, Reduce}},
      {"ReduceSum", 1, reduce_sum, {Reduce}},
      {"ReduceMax", 1, reduce_max, {MaxPool, Reduce}},
      {"ReduceL1", 1, reduce_l1, {PointwiseFunction::Abs, Reduce}},
      {"ReduceL2", 1, reduce_l2, {Square, Reduce, Sqrt}},
      {"ReduceSumSquare", 1, reduce_sum_square, {Square, Reduce}},
      {"BatchNormalization", 1, batch_normalization, {BatchNorm}},
      {"InstanceNormalization", 1, instance_normalization, {InstanceNorm, GroupNorm}},
      {"GroupNormalization", 18, group_normalization, {GroupNorm}},
      {"LayerNormalization", 17, layer_normalization, {LayerNorm}},
      {"LRN", 1, local_response_normalization, {LocalResponseNorm}},
      {"PRelu", 1, prelu, {PReLU}},
      {"Clip", 1, clip, {PointwiseFunction::Clip}},
      {"Softmax",
       1,
       softmax,
       {LayerKind::Softmax, LayerKind::MaxPool, subtracted, Exp, Reduce, divide_by}},
      {"LogSoftmax", 1, softmax, {SoftmaxCrossEntropy}},
      {"Dropout", 1, dropout, {LayerKind::Dropout}},
      {"Add", 1, add, {LayerKind::Add, BinaryFunction::BroadcastAdd, Linear, Convolution}},
      {"Sum", 1, add, {LayerKind::Add, BinaryFunction::BroadcastAdd}},
      {"Sub", 1, subtract, {subtracted, Linear, Convolution}},
      {"Mul", 1, multiply, {BinaryFunction::Multiply, Linear, Convolution}},
      {"Div", 1, divide, {divide_by, Linear, Convolution, PointwiseFunction::Reciprocal}},
      {"Max", 1, extremum, {BinaryFunction::Maximum, PointwiseFunction::Clip}},
      {"Min", 1, extremum, {BinaryFunction::Minimum, PointwiseFunction::Clip}},
      {"Pow", 1, power, {Square, Sqrt, BinaryFunction::Multiply, Power}},
      {"Neg", 1, negative, {Linear}},
      {"Concat", 1, concat, {LayerKind::Concat}},
      {"Pad", 1, pad, {LayerKind::Pad}},
      {"Slice", 1, slice, {LayerKind::Pad, AveragePool}},
      {"Gather", 1, gather, {LayerKind::Pad}},
      {"Split", 1, split, {LayerKind::Pad}},
      {"Resize", 10, resize, {Upsample}},
      {"Upsample", 7, resize, {Upsample}},
      {"DepthToSpace", 1, depth_to_space, {DepthToSpace}},
      {"SpaceToDepth", 1, space_to_depth, {SpaceToDepth}},
      {"Expand", 8, expand, {Upsample, LayerKind::Concat}},
      {"Flatten", 1, flatten, moves},
      {"Reshape", 1, reshape, moves},
      {"Squeeze", 1, squeeze, moves},
      {"Transpose", 1, transpose, moves},
      {"Unsqueeze", 1, unsqueeze, moves},
      {"Identity", 1, identity, {}},
      {"Cast", 1, identity, {}},
  };
  return all;
}

/// The operator set that brought a pointwise function's operator.
std::int64_t brought_by(std::string_view onnx) {
  static const std::map<std::string_view, std::int64_t> later{
      {"Erf", 9}, {"Celu", 12}, {"HardSwish", 14}, {"Mish", 18}, {"Gelu", 20}};
  const auto found = later.find(onnx);
  return found == later.end() ? 1 : found->second;
}

}  // namespace

Translation translation_of(const Node& node) {
  static const std::map<std::string, Translation> table = [] {
    std::map<std::string, Translation> made;
    for (const Row& row : rows()) made.emplace(row.name, row.translation);
    return made;
  }();
  if (!node.domain().empty()) return nullptr;
  const auto found = table.find(node.op());
  if (found != table.end()) return found->second;
  return pointwise_function(node) ? pointwise : nullptr;
}

}  // namespace stratplan::interop

namespace stratplan {

std::vector<ImportedOperator> imported_operators() {
  using namespace interop;
  std::map<std::string, ImportedOperator> sorted;
  for (const auto& [name, since, translation, layers] : rows())
    sorted[name] = {name, since, layers};
  for (const PointwiseFunction function : all_pointwise_functions) {
    const std::string name(row_of(function).onnx);
    if (name.empty()) continue;
    sorted.try_emplace(name, ImportedOperator{name, brought_by(name), {}})
        .first->second.layers.emplace_back(function);
  }
  std::vector<ImportedOperator> all;
  for (auto& [name, row] : sorted) all.push_back(std::move(row));
  return all;
}

}  // namespace stratplan
