#include "interop/onnx/operators.hpp"

namespace stratplan::interop {

Translation translation_of(const Node& node) {
  static const std::map<std::string, Translation> table{
      {"Conv", convolution},
      {"ConvTranspose", transposed_convolution},
      {"MaxPool", max_pool},
      {"AveragePool", average_pool},
      {"GlobalAveragePool", global_average_pool},
      {"GlobalMaxPool", global_max_pool},
      {"ReduceMean", reduce_mean},
      {"Pad", pad},
      {"Resize", resize},
      {"Upsample", resize},
      {"BatchNormalization", batch_normalization},
      {"InstanceNormalization", instance_normalization},
      {"GroupNormalization", group_normalization},
      {"LRN", local_response_normalization},
      {"Relu", relu},
      {"LeakyRelu", leaky_relu},
      {"Sigmoid", sigmoid},
      {"Tanh", hyperbolic_tangent},
      {"Elu", elu},
      {"PRelu", prelu},
      {"Clip", clip},
      {"Softmax", softmax},
      {"LogSoftmax", softmax},
      {"Dropout", dropout},
      {"Identity", identity},
      {"Cast", identity},
      {"Add", add},
      {"Sum", add},
      {"Sub", subtract},
      {"Mul", multiply},
      {"Div", divide},
      {"Concat", concat},
      {"Gemm", gemm},
      {"MatMul", matrix_product},
      {"Flatten", flatten},
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Transpose", transpose},
  };
  const auto found = node.domain().empty() ? table.find(node.op()) : table.end();
  return found == table.end() ? nullptr : found->second;
}

}  // namespace stratplan::interop
