// The backend on processors. Convolutions use oneDNN and the kernels of convolution/. All other
// kinds use the loops of this folder.
#include <fmt/format.h>

#include "model/partition/program/contraction.hpp"
#include "runtime/cpu/convolution/convolution.hpp"
#include "runtime/cpu/convolution/onednn.hpp"
#include "runtime/cpu/convolution/route.hpp"
#include "runtime/cpu/kernels.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

FunctionKernel::Function function_of(KernelKind kind) {
  using namespace cpu;
  switch (kind) {
    case KernelKind::BiasAdd: return bias_add;
    case KernelKind::BiasGradient: return bias_gradient;
    case KernelKind::MaxPoolForward: return max_pool_forward;
    case KernelKind::MaxPoolBackward: return max_pool_backward;
    case KernelKind::AveragePoolForward: return average_pool_forward;
    case KernelKind::AveragePoolBackward: return average_pool_backward;
    case KernelKind::SpatialMeanForward: return spatial_mean_forward;
    case KernelKind::SpatialMeanBackward: return spatial_mean_backward;
    case KernelKind::ReduceForward: return reduce_forward;
    case KernelKind::ReduceBackward: return reduce_backward;
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
    case KernelKind::ConvolutionForward:
    case KernelKind::ConvolutionBackwardData:
    case KernelKind::ConvolutionBackwardFilter:
    case KernelKind::UpsampleForward:
    case KernelKind::UpsampleBackward:
    case KernelKind::RearrangeForward:
    case KernelKind::RearrangeBackward:
    case KernelKind::CopyRegion: break;  // prepare() makes these kernels; none is a single function
    case KernelKind::Convert: return convert;
    case KernelKind::Widen: return widen;
    case KernelKind::Unscale:
    case KernelKind::AdjustLossScale: break;  // prepare() rejects scaled losses
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kind));
  return nullptr;
}

/// Returns the size of a kernel's scratch memory. Local response kernels need rows of channels for
/// each thread. Other kernels need at most four floats or two doubles per channel.
Bytes workspace_of(const Kernel& kernel) {
  using enum KernelKind;
  switch (kernel.kind) {
    case BiasGradient: return {kernel.y[Axis::C] * size_of(DataType::F64)};
    case SpatialMeanForward: return {kernel.x[Axis::C] * size_of(DataType::F64)};
    case BatchNormInference:
    case BatchNormForward: return {2 * kernel.x[Axis::C] * size_of(DataType::F32)};
    case BatchNormBackwardSums: return {kernel.x[Axis::C] * size_of(DataType::F32)};
    case BatchNormBackward: return {4 * kernel.x[Axis::C] * size_of(DataType::F32)};
    case PreluGradient: return {kernel.x[Axis::C] * size_of(DataType::F64)};
    case LayerNormGradient: return {2 * kernel.x[Axis::C] * size_of(DataType::F64)};
    case LocalResponseForward:
    case LocalResponseBackward: return cpu::local_response_workspace(kernel);
    case WeightedCrossEntropy: return {kernel.x[Axis::C] * size_of(DataType::F32)};
    case DiceLoss: return {2 * kernel.x[Axis::C] * size_of(DataType::F32)};
    default: return {0};
  }
}

class CpuBackend : public HostBackend {
 public:
  explicit CpuBackend(int threads) : threads_(threads) {}
  std::string name() const override { return "cpu"; }

  std::vector<std::string> choices(const Kernel& kernel) override {
    omp_set_num_threads(threads_);
    return is_contraction(kernel.kind) ? cpu::convolution_choices(kernel)
                                       : std::vector<std::string>();
  }

  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    // A oneDNN primitive keeps the number of threads that is set when the primitive is made.
    omp_set_num_threads(threads_);
    check_shapes(kernel);
    require_single_precision(kernel, name());
    if (is_contraction(kernel.kind)) return cpu::prepare_convolution(kernel, choice);
    if (!choice.empty())
      throw EnvironmentError(fmt::format(
          "the plan computes the kernel {} with the implementation {}, but the cpu "
          "backend has only one implementation of this kernel; make the plan anew on this machine",
          kernel.key(), choice));
    switch (kernel.kind) {
      case KernelKind::CopyRegion: return cpu::prepare_copy(kernel);
      case KernelKind::UpsampleForward:
      case KernelKind::UpsampleBackward: return cpu::prepare_upsampling(kernel);
      case KernelKind::RearrangeForward:
      case KernelKind::RearrangeBackward: return cpu::prepare_rearrangement(kernel);
      default:
        return std::make_unique<FunctionKernel>(kernel, function_of(kernel.kind), "own",
                                                workspace_of(kernel));
    }
  }

  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    // The number of threads is a setting of the calling thread, and ranks may be threads of one
    // process.
    omp_set_num_threads(threads_);
    HostBackend::enqueue(stream, kernel, reads, writes, workspace, context);
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

PartInfo cpu_part() {
  return {true,
          fmt::format("{}, kernels of revision {}", cpu::library_text(), cpu::kernels_revision)};
}

}  // namespace stratplan
