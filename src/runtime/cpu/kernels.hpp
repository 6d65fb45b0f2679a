#pragma once
// The cpu backend's own kernels, for all kinds except convolutions. Their operands are listed in
// model/partition/program/kernel.hpp. Tensors are channels last. A "row" is the run of channels at
// one position, and loops run along rows. Sums are accumulated in double. The order of summation
// depends on the local shape alone, so that runs repeat bit by bit.
#include <omp.h>

#include <algorithm>

#include "runtime/device/host_backend.hpp"

/// Marks a leaf function to be compiled for several instruction sets. The loader chooses one
/// version when the program starts. The macro is empty under clang. It is also empty under
/// sanitizers, whose run time is not yet initialized when the loader chooses.
#ifdef STRATPLAN_CLONES
#define SP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SP_CLONES
#endif

namespace stratplan::cpu {

constexpr std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}

/// Least number of elements for which an additional thread pays off.
constexpr std::int64_t element_grain = 4096;

/// Calls body(begin, end) on pieces of [0, count), in parallel on as many threads as the calling
/// thread may use. The length of every piece but the last is a multiple of `grain`.
template <class Body>
void in_parallel(std::int64_t count, std::int64_t grain, Body body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t pieces = std::min<std::int64_t>(omp_get_max_threads(), grains);
  if (pieces <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(pieces))
  for (std::int64_t piece = 0; piece < pieces; ++piece)
    body(grains * piece / pieces * grain, std::min(count, grains * (piece + 1) / pieces * grain));
}

/// Converts a flat tensor from floats to a narrow type, or back.
void convert(const Kernel& kernel, const KernelCall& call);
void widen(const Kernel& kernel, const KernelCall& call);

/// Calls rows(index of the first element, number of rows, channels) on pieces of x, in parallel.
template <class Rows>
void in_rows(const Kernel& kernel, Rows rows) {
  constexpr std::int64_t row_grain = 16;  // rows in one unit of parallel work
  const std::int64_t channels = kernel.x[Axis::C];
  in_parallel(kernel.x.elements() / channels, row_grain,
              [&](auto begin, auto end) { rows(begin * channels, end - begin, channels); });
}

/// Returns `value` if `sign` is positive, else slope * value. This is a leaky ReLU, or a ReLU if
/// slope is 0. The result is a sum of two terms, because compilers branch around a product that may
/// not be needed, and then do not vectorize.
[[gnu::always_inline]] inline float leak(float sign, float value, float slope) {
  const float above = sign > 0 ? value : 0, below = sign > 0 ? 0 : value;
  return above + slope * below;
}
/// leak() for the compiler's vector types.
template <class Vector>
[[gnu::always_inline]] inline Vector leak(Vector sign, Vector value, float slope) {
  return sign > Vector{} ? value : slope * value;
}

/// Adds the sum of x[row][c] over all rows to sums[c], in double.
void add_column_sums(const float* x, std::int64_t rows, std::int64_t channels, double* sums);

/// Applies the kernel's activation, if it has one, to `count` elements in place.
void activate(const Kernel& kernel, float* y, std::int64_t count);

void bias_add(const Kernel& kernel, const KernelCall& call);
void bias_gradient(const Kernel& kernel, const KernelCall& call);
void max_pool_forward(const Kernel& kernel, const KernelCall& call);
void max_pool_backward(const Kernel& kernel, const KernelCall& call);
void average_pool_forward(const Kernel& kernel, const KernelCall& call);
void average_pool_backward(const Kernel& kernel, const KernelCall& call);
void spatial_mean_forward(const Kernel& kernel, const KernelCall& call);
void spatial_mean_backward(const Kernel& kernel, const KernelCall& call);
void reduce_forward(const Kernel& kernel, const KernelCall& call);
void reduce_backward(const Kernel& kernel, const KernelCall& call);
void batch_norm_statistics(const Kernel& kernel, const KernelCall& call);
void batch_norm_forward(const Kernel& kernel, const KernelCall& call);
void batch_norm_backward_sums(const Kernel& kernel, const KernelCall& call);
void batch_norm_backward(const Kernel& kernel, const KernelCall& call);
void pointwise_forward(const Kernel& kernel, const KernelCall& call);
void pointwise_backward(const Kernel& kernel, const KernelCall& call);
void binary_forward(const Kernel& kernel, const KernelCall& call);
void binary_backward(const Kernel& kernel, const KernelCall& call);
void add(const Kernel& kernel, const KernelCall& call);
void dropout(const Kernel& kernel, const KernelCall& call);
void softmax_cross_entropy(const Kernel& kernel, const KernelCall& call);
void label_weights(const Kernel& kernel, const KernelCall& call);
void weighted_cross_entropy(const Kernel& kernel, const KernelCall& call);
void elementwise_loss(const Kernel& kernel, const KernelCall& call);
void fill(const Kernel& kernel, const KernelCall& call);
void sgd_momentum(const Kernel& kernel, const KernelCall& call);
void prelu_forward(const Kernel& kernel, const KernelCall& call);
void prelu_backward(const Kernel& kernel, const KernelCall& call);
void prelu_gradient(const Kernel& kernel, const KernelCall& call);
void layer_norm_forward(const Kernel& kernel, const KernelCall& call);
void layer_norm_backward(const Kernel& kernel, const KernelCall& call);
void layer_norm_gradient(const Kernel& kernel, const KernelCall& call);
void softmax_forward(const Kernel& kernel, const KernelCall& call);
void softmax_backward(const Kernel& kernel, const KernelCall& call);
void local_response_forward(const Kernel& kernel, const KernelCall& call);
void local_response_backward(const Kernel& kernel, const KernelCall& call);
void dice_sums(const Kernel& kernel, const KernelCall& call);
void dice_loss(const Kernel& kernel, const KernelCall& call);
void batch_norm_moments(const Kernel& kernel, const KernelCall& call);
void running_average(const Kernel& kernel, const KernelCall& call);
void batch_norm_running_sums(const Kernel& kernel, const KernelCall& call);
void batch_norm_inference(const Kernel& kernel, const KernelCall& call);

/// Returns the size of the scratch memory of the local response kernels. Each thread has three rows
/// of channels, one of which is padded.
Bytes local_response_workspace(const Kernel& kernel);
void sgd(const Kernel& kernel, const KernelCall& call);
void sgd_nesterov(const Kernel& kernel, const KernelCall& call);
void adam(const Kernel& kernel, const KernelCall& call);
void adamw(const Kernel& kernel, const KernelCall& call);
void squared_norms(const Kernel& kernel, const KernelCall& call);
void lars(const Kernel& kernel, const KernelCall& call);

/// Prepares CopyRegion. Loops over adjacent elements are merged here, once per kernel.
std::unique_ptr<HostKernel> prepare_copy(const Kernel& kernel);
/// Prepares RearrangeForward or RearrangeBackward. Where channels lie is worked out here.
std::unique_ptr<HostKernel> prepare_rearrangement(const Kernel& kernel);
/// Prepares UpsampleForward or UpsampleBackward. The elements that each position mixes are worked
/// out here, once per kernel.
std::unique_ptr<HostKernel> prepare_upsampling(const Kernel& kernel);

}  // namespace stratplan::cpu
