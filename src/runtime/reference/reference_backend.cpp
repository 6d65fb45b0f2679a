#include "runtime/device/backend.hpp"
#include "runtime/device/stored_constants.hpp"
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
    case KernelKind::PointwiseForward: return pointwise_forward;
    case KernelKind::PointwiseBackward: return pointwise_backward;
    case KernelKind::BinaryForward: return binary_forward;
    case KernelKind::BinaryBackward: return binary_backward;
    case KernelKind::Add: return add;
    case KernelKind::Dropout: return dropout;
    case KernelKind::SoftmaxCrossEntropy: return softmax_cross_entropy;
    case KernelKind::LabelWeights: return label_weights;
    case KernelKind::WeightedCrossEntropy: return weighted_cross_entropy;
    case KernelKind::ElementwiseLoss: return elementwise_loss;
    case KernelKind::CopyRegion: return copy_region;
    case KernelKind::Fill: return fill;
    case KernelKind::SgdMomentum: return sgd_momentum;
    case KernelKind::PreluForward: return prelu_forward;
    case KernelKind::PreluBackward: return prelu_backward;
    case KernelKind::PreluGradient: return prelu_gradient;
    case KernelKind::LayerNormForward: return layer_norm_forward;
    case KernelKind::LayerNormBackward: return layer_norm_backward;
    case KernelKind::LayerNormGradient: return layer_norm_gradient;
    case KernelKind::SoftmaxForward: return softmax_forward;
    case KernelKind::SoftmaxBackward: return softmax_backward;
    case KernelKind::LocalResponseForward: return local_response_forward;
    case KernelKind::LocalResponseBackward: return local_response_backward;
    case KernelKind::DiceSums: return dice_sums;
    case KernelKind::DiceLoss: return dice_loss;
    case KernelKind::ReduceForward: return reduce_forward;
    case KernelKind::ReduceBackward: return reduce_backward;
    case KernelKind::RearrangeForward:
    case KernelKind::RearrangeBackward: return rearrange;
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
    case KernelKind::BatchNormRunningSums: return batch_norm_running_sums;
    case KernelKind::BatchNormInference: return batch_norm_inference;
    case KernelKind::Convert: return convert;
    case KernelKind::Widen: return widen;
    case KernelKind::Unscale: return unscale;
    case KernelKind::AdjustLossScale: return adjust_loss_scale;
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kind));
  return nullptr;
}

/// Returns the size of the scratch memory of kernels that sum in double (sums_of) before they
/// round.
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
    case ReduceForward:
    case PreluGradient:
    case BinaryBackward:
    case UpsampleBackward: return {kernel.operands().writes[0].elements * size_of(DataType::F64)};
    case LayerNormGradient: return {2 * kernel.x[Axis::C] * size_of(DataType::F64)};
    default: return {0};
  }
}

/// Computes a kernel on 16-bit operands as the same kernel on floats. The 16-bit reads are widened
/// to floats, and the 16-bit writes are rounded from floats.
class NarrowKernel : public HostKernel {
 public:
  explicit NarrowKernel(const Kernel& kernel)
      : type_(kernel.type), operands_(kernel.operands()), in_floats_(kernel) {
    in_floats_.type = DataType::F32;
    function_ = function_of(kernel.kind);
    if (auto* pointwise = std::get_if<Activation>(&in_floats_.attributes))
      pointwise->constants = stored_constants(*pointwise, type_);
    for (const auto* side : {&operands_.reads, &operands_.writes})
      for (const Operand& operand : *side)
        floats_ += is_narrow(operand.type) ? padded(operand.elements) : 0;
    reads_.resize(operands_.reads.size());
    writes_.resize(operands_.writes.size());
  }
  Bytes workspace() const override {
    return Bytes{floats_ * size_of(DataType::F32)} + workspace_of(in_floats_);
  }
  std::string implementation() const override { return "reference"; }

  void run(const KernelCall& call) override {
    float* room = static_cast<float*>(call.workspace);
    void* beyond = room + floats_;
    const auto floats = [&](const Operand& operand) {
      return std::exchange(room, room + padded(operand.elements));
    };
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      reads_[i] = call.reads[i];
      if (!is_narrow(operands_.reads[i].type)) continue;
      float* values = floats(operands_.reads[i]);
      widen(type_, call.reads[i], values, operands_.reads[i].elements);
      reads_[i] = values;
    }
    for (std::size_t i = 0; i < writes_.size(); ++i)
      writes_[i] =
          is_narrow(operands_.writes[i].type) ? floats(operands_.writes[i]) : call.writes[i];
    function_(in_floats_, {reads_, writes_, beyond, call.context});
    for (std::size_t i = 0; i < writes_.size(); ++i)
      if (is_narrow(operands_.writes[i].type))
        narrow(type_, static_cast<const float*>(writes_[i]), call.writes[i],
               operands_.writes[i].elements);
  }

 private:
  /// Rounds up to an even number of floats, because doubles may follow them in the workspace.
  static std::int64_t padded(std::int64_t elements) { return (elements + 1) / 2 * 2; }

  DataType type_;
  Operands operands_;
  Kernel in_floats_;
  FunctionKernel::Function function_;
  std::int64_t floats_ = 0;  ///< floats in the workspace that hold 16-bit operands
  std::vector<const void*> reads_;
  std::vector<void*> writes_;
};

/// An update that is skipped after a gradient overflow. All its outputs then keep their values.
class CarefulUpdate : public FunctionKernel {
 public:
  using FunctionKernel::FunctionKernel;
  void run(const KernelCall& call) override {
    if (*static_cast<const double*>(call.reads.back()) == 0) FunctionKernel::run(call);
  }
};

class ReferenceBackend : public HostBackend {
 public:
  std::string name() const override { return "reference"; }
  /// The choice, which a plan may have made for a faster backend, is ignored, because each kernel
  /// has one implementation.
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel, const std::string&) override {
    check_shapes(kernel);
    if (is_narrow(kernel.type) && works_on_activations(kernel.kind))
      return std::make_unique<NarrowKernel>(kernel);
    if (is_update(kernel.kind) && kernel.scaled())
      return std::make_unique<CarefulUpdate>(kernel, function_of(kernel.kind), "reference");
    return std::make_unique<FunctionKernel>(kernel, function_of(kernel.kind), "reference",
                                            workspace_of(kernel));
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace stratplan
