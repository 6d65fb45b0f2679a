#include "runtime/backend.hpp"
#include "runtime/reference/kernels.hpp"

namespace stratplan {
namespace {

FunctionKernel::Function function_of(KernelKind kind) {
  using namespace reference;
  switch (kind) {
    case KernelKind::ConvolutionForward: return convolution_forward;
    case KernelKind::ConvolutionBackwardData: return convolution_backward_data;
    case KernelKind::ConvolutionBackwardFilter: return convolution_backward_filter;
    case KernelKind::BiasAdd: return bias_add;
    case KernelKind::BiasGradient: return bias_gradient;
    case KernelKind::MaxPoolForward: return max_pool_forward;
    case KernelKind::MaxPoolBackward: return max_pool_backward;
    case KernelKind::AveragePoolForward: return average_pool_forward;
    case KernelKind::AveragePoolBackward: return average_pool_backward;
    case KernelKind::SpatialMeanForward: return spatial_mean_forward;
    case KernelKind::SpatialMeanBackward: return spatial_mean_backward;
    case KernelKind::BatchNormStatistics: return batch_norm_statistics;
    case KernelKind::BatchNormForward: return batch_norm_forward;
    case KernelKind::BatchNormBackwardSums: return batch_norm_backward_sums;
    case KernelKind::BatchNormBackward: return batch_norm_backward;
    case KernelKind::ReluForward: return relu_forward;
    case KernelKind::ReluBackward: return relu_backward;
    case KernelKind::LeakyReluForward: return leaky_relu_forward;
    case KernelKind::LeakyReluBackward: return leaky_relu_backward;
    case KernelKind::SigmoidForward: return sigmoid_forward;
    case KernelKind::SigmoidBackward: return sigmoid_backward;
    case KernelKind::Add: return add;
    case KernelKind::Dropout: return dropout;
    case KernelKind::SoftmaxCrossEntropy: return softmax_cross_entropy;
    case KernelKind::MeanSquaredError: return mean_squared_error;
    case KernelKind::CopyRegion: return copy_region;
    case KernelKind::Fill: return fill;
    case KernelKind::SgdMomentum: return sgd_momentum;
    case KernelKind::TanhForward: return tanh_forward;
    case KernelKind::TanhBackward: return tanh_backward;
    case KernelKind::EluForward: return elu_forward;
    case KernelKind::EluBackward: return elu_backward;
    case KernelKind::ClipForward: return clip_forward;
    case KernelKind::ClipBackward: return clip_backward;
    case KernelKind::PreluForward: return prelu_forward;
    case KernelKind::PreluBackward: return prelu_backward;
    case KernelKind::PreluGradient: return prelu_gradient;
    case KernelKind::SoftmaxForward: return softmax_forward;
    case KernelKind::SoftmaxBackward: return softmax_backward;
    case KernelKind::LocalResponseForward: return local_response_forward;
    case KernelKind::LocalResponseBackward: return local_response_backward;
    case KernelKind::DiceSums: return dice_sums;
    case KernelKind::DiceLoss: return dice_loss;
    case KernelKind::UpsampleForward: return upsample_forward;
    case KernelKind::UpsampleBackward: return upsample_backward;
    case KernelKind::Sgd: return sgd;
    case KernelKind::SgdNesterov: return sgd_nesterov;
    case KernelKind::Adam: return adam;
    case KernelKind::AdamW: return adamw;
    case KernelKind::SquaredNorms: return squared_norms;
    case KernelKind::Lars: return lars;
    case KernelKind::BatchNormMoments: return batch_norm_moments;
    case KernelKind::RunningAverage: return running_average;
    case KernelKind::BatchNormInference: return batch_norm_inference;
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kind));
  return nullptr;
}

/// Of kernels that add up their results here and there (sums_of).
Bytes workspace_of(const Kernel& kernel) {
  using enum KernelKind;
  switch (kernel.kind) {
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter:
    case BiasGradient:
    case MaxPoolBackward:
    case AveragePoolBackward:
    case SpatialMeanForward:
    case PreluGradient:
    case UpsampleBackward: return {kernel.operands().writes[0].elements * size_of(DataType::F64)};
    default: return {0};
  }
}

class ReferenceBackend : public HostBackend {
 public:
  std::string name() const override { return "reference"; }
  /// Whatever a plan chose for faster backends: there is one implementation of each kernel.
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel, const std::string&) override {
    check_shapes(kernel);
    return std::make_unique<FunctionKernel>(kernel, function_of(kernel.kind), "reference", workspace_of(kernel));
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace stratplan
