#pragma once
// Any kernel of our own, which is any but convolutions, and the scratch memory that it needs.
#include <stdexcept>

#include "runtime/cuda/own/activations.hpp"
#include "runtime/cuda/own/batch_norm.hpp"
#include "runtime/cuda/own/bias.hpp"
#include "runtime/cuda/own/element_wise.hpp"
#include "runtime/cuda/own/local_response.hpp"
#include "runtime/cuda/own/loss.hpp"
#include "runtime/cuda/own/movement.hpp"
#include "runtime/cuda/own/optimizer.hpp"
#include "runtime/cuda/own/pooling.hpp"
#include "runtime/cuda/own/softmax.hpp"
#include "runtime/cuda/own/upsampling.hpp"

namespace stratplan::own {

template <class Launch>
void run(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  using enum KernelKind;
  switch (kernel.kind) {
    case BiasAdd: return bias_add(kernel, call, launch);
    case BiasGradient: return bias_gradient(kernel, call, launch);
    case MaxPoolForward: return max_pool_forward(kernel, call, launch);
    case MaxPoolBackward: return max_pool_backward(kernel, call, launch);
    case AveragePoolForward: return average_pool_forward(kernel, call, launch);
    case AveragePoolBackward: return average_pool_backward(kernel, call, launch);
    case SpatialMeanForward: return spatial_mean_forward(kernel, call, launch);
    case SpatialMeanBackward: return spatial_mean_backward(kernel, call, launch);
    case BatchNormStatistics: return batch_norm_statistics(kernel, call, launch);
    case BatchNormForward: return batch_norm_forward(kernel, call, launch);
    case BatchNormBackwardSums: return batch_norm_backward_sums(kernel, call, launch);
    case BatchNormBackward: return batch_norm_backward(kernel, call, launch);
    case ReluForward: return relu_forward(kernel, call, launch);
    case ReluBackward: return relu_backward(kernel, call, launch);
    case LeakyReluForward: return leaky_relu_forward(kernel, call, launch);
    case LeakyReluBackward: return leaky_relu_backward(kernel, call, launch);
    case SigmoidForward: return sigmoid_forward(kernel, call, launch);
    case SigmoidBackward: return sigmoid_backward(kernel, call, launch);
    case Add: return add(kernel, call, launch);
    case Dropout: return dropout(kernel, call, launch);
    case SoftmaxCrossEntropy: return softmax_cross_entropy(kernel, call, launch);
    case MeanSquaredError: return mean_squared_error(kernel, call, launch);
    case CopyRegion: return copy_region(kernel, call, launch);
    case Fill: return fill(kernel, call, launch);
    case SgdMomentum: return sgd_momentum(kernel, call, launch);
    case TanhForward: return tanh_forward(kernel, call, launch);
    case TanhBackward: return tanh_backward(kernel, call, launch);
    case EluForward: return elu_forward(kernel, call, launch);
    case EluBackward: return elu_backward(kernel, call, launch);
    case ClipForward: return clip_forward(kernel, call, launch);
    case ClipBackward: return clip_backward(kernel, call, launch);
    case PreluForward: return prelu_forward(kernel, call, launch);
    case PreluBackward: return prelu_backward(kernel, call, launch);
    case PreluGradient: return prelu_gradient(kernel, call, launch);
    case SoftmaxForward: return softmax_forward(kernel, call, launch);
    case SoftmaxBackward: return softmax_backward(kernel, call, launch);
    case LocalResponseForward: return local_response_forward(kernel, call, launch);
    case LocalResponseBackward: return local_response_backward(kernel, call, launch);
    case DiceSums: return dice_sums(kernel, call, launch);
    case DiceLoss: return dice_loss(kernel, call, launch);
    case UpsampleForward: return upsample_forward(kernel, call, launch);
    case UpsampleBackward: return upsample_backward(kernel, call, launch);
    case Sgd: return sgd(kernel, call, launch);
    case SgdNesterov: return sgd_nesterov(kernel, call, launch);
    case Adam: return adam(kernel, call, launch);
    case AdamW: return adamw(kernel, call, launch);
    case SquaredNorms: return squared_norms(kernel, call, launch);
    case Lars: return lars(kernel, call, launch);
    case BatchNormMoments: return batch_norm_moments(kernel, call, launch);
    case RunningAverage: return running_average(kernel, call, launch);
    case BatchNormInference: return batch_norm_inference(kernel, call, launch);
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter: break;
  }
  throw std::logic_error("no own kernel of kind " + std::string(name_of(kernel.kind)));
}

inline Bytes workspace(const Kernel& kernel) {
  using enum KernelKind;
  switch (kernel.kind) {
    case BiasGradient: return SumPlan(one_set(kernel.y), kernel.y[Axis::C], 1).workspace();
    case PreluGradient: return SumPlan(one_set(kernel.x), kernel.x[Axis::C], 1).workspace();
    case DiceSums: return SumPlan(one_set(kernel.x), kernel.x[Axis::C], 3).workspace();
    case SpatialMeanForward: return SumPlan(a_set_each_sample(kernel.x), kernel.x[Axis::C], 1).workspace();
    case BatchNormStatistics: return SumPlan(sets_of(kernel), kernel.x[Axis::C], 2).workspace();
    case BatchNormForward: return group_sums_bytes(kernel);
    case BatchNormBackward: return group_sums_bytes(kernel) * 2;
    case BatchNormBackwardSums: return backward_sums_workspace(kernel);
    case SoftmaxForward: return row_workspace<SoftmaxRow>(kernel);
    case SoftmaxBackward: return row_workspace<SoftmaxGradientRow>(kernel);
    case SoftmaxCrossEntropy: return cross_entropy_workspace(kernel);
    case MeanSquaredError: return SumPlan(one_set(kernel.x.elements()), 1, 1).workspace();
    case DiceLoss: return SumPlan(one_set(kernel.x[Axis::C]), 1, 1).workspace();
    case SquaredNorms: return SumPlan(one_set(kernel.y.elements()), 1, 2).workspace();
    case LocalResponseBackward: return local_response_workspace(kernel);
    default: return {0};
  }
}

}  // namespace stratplan::own
