#include "interop/onnx/operators/operators.hpp"

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
      {"Slice", slice},
      {"Split", split},
      {"Resize", resize},
      {"Upsample", resize},
      {"BatchNormalization", batch_normalization},
      {"InstanceNormalization", instance_normalization},
      {"GroupNormalization", group_normalization},
      {"LayerNormalization", layer_normalization},
      {"LRN", local_response_normalization},
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
      {"Pow", power},
      {"Concat", concat},
      {"Gemm", gemm},
      {"MatMul", matrix_product},
      {"Flatten", flatten},
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze},
      {"Transpose", transpose},
  };
  if (!node.domain().empty()) return nullptr;
  const auto found = table.find(node.op());
  if (found != table.end()) return found->second;
  return pointwise_function(node) ? pointwise : nullptr;
}

}  // namespace stratplan::interop
