#pragma once
// Runs kernels of any kind but convolutions, and gives the size of their scratch memory.
#include <stdexcept>

#include "runtime/cuda/kernels/activations.hpp"
#include "runtime/cuda/kernels/batch_norm.hpp"
#include "runtime/cuda/kernels/bias.hpp"
#include "runtime/cuda/kernels/binary.hpp"
#include "runtime/cuda/kernels/element_wise.hpp"
#include "runtime/cuda/kernels/layer_norm.hpp"
#include "runtime/cuda/kernels/local_response.hpp"
#include "runtime/cuda/kernels/loss.hpp"
#include "runtime/cuda/kernels/loss_scale.hpp"
#include "runtime/cuda/kernels/movement.hpp"
#include "runtime/cuda/kernels/optimizer.hpp"
#include "runtime/cuda/kernels/pointwise.hpp"
#include "runtime/cuda/kernels/pooling.hpp"
#include "runtime/cuda/kernels/reduction.hpp"
#include "runtime/cuda/kernels/softmax.hpp"
#include "runtime/cuda/kernels/upsampling.hpp"

namespace stratplan::cuda_kernels {

/// Runs kernels that depend on T, the type of stored activations. Returns false for other kinds.
template <class T, class Launch>
bool run_on(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  using enum KernelKind;
  switch (kernel.kind) {
    case BiasAdd: bias_add<T>(kernel, call, launch); break;
    case BiasGradient: bias_gradient<T>(kernel, call, launch); break;
    case MaxPoolForward: max_pool_forward<T>(kernel, call, launch); break;
    case MaxPoolBackward: max_pool_backward<T>(kernel, call, launch); break;
    case AveragePoolForward: average_pool_forward<T>(kernel, call, launch); break;
    case AveragePoolBackward: average_pool_backward<T>(kernel, call, launch); break;
    case SpatialMeanForward: spatial_mean_forward<T>(kernel, call, launch); break;
    case SpatialMeanBackward: spatial_mean_backward<T>(kernel, call, launch); break;
    case ReduceForward: reduce_forward<T>(kernel, call, launch); break;
    case ReduceBackward: reduce_backward<T>(kernel, call, launch); break;
    case RearrangeForward:
    case RearrangeBackward: rearrange<T>(kernel, call, launch); break;
    case BatchNormStatistics: batch_norm_statistics<T>(kernel, call, launch); break;
    case BatchNormForward: batch_norm_forward<T>(kernel, call, launch); break;
    case BatchNormBackwardSums: batch_norm_backward_sums<T>(kernel, call, launch); break;
    case BatchNormBackward: batch_norm_backward<T>(kernel, call, launch); break;
    case PointwiseForward: pointwise_forward<T>(kernel, call, launch); break;
    case PointwiseBackward: pointwise_backward<T>(kernel, call, launch); break;
    case BinaryForward: binary_forward<T>(kernel, call, launch); break;
    case BinaryBackward: binary_backward<T>(kernel, call, launch); break;
    case Add: add<T>(kernel, call, launch); break;
    case Dropout: dropout<T>(kernel, call, launch); break;
    case SoftmaxCrossEntropy: softmax_cross_entropy<T>(kernel, call, launch); break;
    case ElementwiseLoss: elementwise_loss<T>(kernel, call, launch); break;
    case WeightedCrossEntropy: weighted_cross_entropy<T>(kernel, call, launch); break;
    case PreluForward: prelu_forward<T>(kernel, call, launch); break;
    case PreluBackward: prelu_backward<T>(kernel, call, launch); break;
    case PreluGradient: prelu_gradient<T>(kernel, call, launch); break;
    case SoftmaxForward: softmax_forward<T>(kernel, call, launch); break;
    case SoftmaxBackward: softmax_backward<T>(kernel, call, launch); break;
    case LayerNormForward: layer_norm_forward<T>(kernel, call, launch); break;
    case LayerNormBackward: layer_norm_backward<T>(kernel, call, launch); break;
    case LayerNormGradient: layer_norm_gradient<T>(kernel, call, launch); break;
    case LocalResponseForward: local_response_forward<T>(kernel, call, launch); break;
    case LocalResponseBackward: local_response_backward<T>(kernel, call, launch); break;
    case DiceSums: dice_sums<T>(kernel, call, launch); break;
    case DiceLoss: dice_loss<T>(kernel, call, launch); break;
    case UpsampleForward: upsample_forward<T>(kernel, call, launch); break;
    case UpsampleBackward: upsample_backward<T>(kernel, call, launch); break;
    case BatchNormInference: batch_norm_inference<T>(kernel, call, launch); break;
    default: return false;
  }
  return true;
}

/// Runs kernels whose code does not depend on how activations are stored.
template <class Launch>
void run_on_any(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  using enum KernelKind;
  switch (kernel.kind) {
    case CopyRegion: return copy_region(kernel, call, launch);
    case Fill: return fill(kernel, call, launch);
    case SgdMomentum: return sgd_momentum(kernel, call, launch);
    case Sgd: return sgd(kernel, call, launch);
    case SgdNesterov: return sgd_nesterov(kernel, call, launch);
    case Adam: return adam(kernel, call, launch);
    case AdamW: return adamw(kernel, call, launch);
    case SquaredNorms: return squared_norms(kernel, call, launch);
    case Lars: return lars(kernel, call, launch);
    case BatchNormMoments: return batch_norm_moments(kernel, call, launch);
    case RunningAverage: return running_average(kernel, call, launch);
    case BatchNormRunningSums: return batch_norm_running_sums(kernel, call, launch);
    case LabelWeights: return label_weights(kernel, call, launch);
    case Convert: return convert(kernel, call, launch);
    case Widen: return widen(kernel, call, launch);
    case Unscale: return unscale(kernel, call, launch);
    case AdjustLossScale: return adjust_loss_scale(kernel, call, launch);
    default: break;
  }
  throw std::logic_error("the cuda backend has no own kernel of kind " +
                         std::string(name_of(kernel.kind)));
}

template <class Launch>
void run(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const DataType stored = works_on_activations(kernel.kind) ? kernel.type : DataType::F32;
  const bool done = stored == DataType::F16    ? run_on<Float16>(kernel, call, launch)
                    : stored == DataType::BF16 ? run_on<Bfloat16>(kernel, call, launch)
                                               : run_on<float>(kernel, call, launch);
  if (!done) run_on_any(kernel, call, launch);
}

/// Returns the size of the scratch memory that run() needs.
inline Bytes workspace(const Kernel& kernel) {
  using enum KernelKind;
  switch (kernel.kind) {
    case BiasGradient: return SumPlan(one_set(kernel.y), kernel.y[Axis::C], 1).workspace();
    case PreluGradient: return SumPlan(one_set(kernel.x), kernel.x[Axis::C], 1).workspace();
    case LayerNormForward: return row_workspace<LayerNormRow<float>>(kernel);
    case LayerNormBackward: return row_workspace<LayerNormGradientRow<float>>(kernel);
    case LayerNormGradient: return SumPlan(one_set(kernel.x), kernel.x[Axis::C], 2).workspace();
    case DiceSums: return dice_sums_workspace(kernel);
    case SpatialMeanForward:
      return SumPlan(a_set_each_sample(kernel.x), kernel.x[Axis::C], 1).workspace();
    case BatchNormStatistics: return SumPlan(sets_of(kernel), kernel.x[Axis::C], 2).workspace();
    case BatchNormForward: return group_sums_bytes(kernel);
    case BatchNormBackward: return group_sums_bytes(kernel) * 2;
    case BatchNormBackwardSums: return backward_sums_workspace(kernel);
    case SoftmaxForward: return row_workspace<SoftmaxRow<float>>(kernel);
    case SoftmaxBackward: return row_workspace<SoftmaxGradientRow<float>>(kernel);
    case SoftmaxCrossEntropy: return row_loss_workspace<CrossEntropyRow<float>>(kernel);
    case WeightedCrossEntropy: return row_loss_workspace<WeightedEntropyRow<float>>(kernel);
    case LabelWeights: return SumPlan(one_set(rows_of(kernel)), 1, 1).workspace();
    case ElementwiseLoss: return SumPlan(one_set(kernel.x.elements()), 1, 1).workspace();
    case DiceLoss: return SumPlan(dice_quotients(kernel), 1, 1).workspace();
    case SquaredNorms: return SumPlan(one_set(kernel.y.elements()), 1, 2).workspace();
    case Unscale: return SumPlan(one_set(kernel.y.elements()), 1, 1).workspace();
    case LocalResponseBackward: return local_response_workspace(kernel);
    case BinaryBackward: return RepeatedSum(kernel).workspace();
    case ReduceForward: return reduce_workspace(kernel);
    default: return {0};
  }
}

}  // namespace stratplan::cuda_kernels
