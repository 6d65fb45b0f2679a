#pragma once
// The cpu backend's own kernels, one per kind that oneDNN does not do. Tensors are channels last: a
// "row" is the run of channels at one position, and loops run along it. Sums are accumulated in
// double, in an order that depends on nothing but the local shape, so that runs repeat bit by bit.
#include <omp.h>

#include <algorithm>

#include "runtime/device/host_backend.hpp"

/// A leaf compiled for several instruction sets, chosen when the program is loaded. Off under
/// sanitizers, whose run time is not yet up by then.
#ifdef STRATPLAN_CLONES
#define SP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SP_CLONES
#endif

namespace stratplan::cpu {

constexpr std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}

/// Fewer elements are not worth a thread.
constexpr std::int64_t element_grain = 4096;

/// Calls body(begin, end) on pieces of [0, count), each a multiple of `grain` long but the last, on
/// as many threads as this one may use.
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

/// `value` where `sign` is positive, slope times it elsewhere: a leaky ReLU, and with slope 0 a
/// ReLU. A sum of two, because compilers branch around products that may not be needed, and then
/// make no vectors.
[[gnu::always_inline]] inline float leak(float sign, float value, float slope) {
  const float above = sign > 0 ? value : 0, below = sign > 0 ? 0 : value;
  return above + slope * below;
}
/// The same of the compiler's vectors.
template <class Vector>
[[gnu::always_inline]] inline Vector leak(Vector sign, Vector value, float slope) {
  return sign > Vector{} ? value : slope * value;
}

/// Sums over rows in double: sums[c] += sum of x[row][c].
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
void mean_squared_error(const Kernel& kernel, const KernelCall& call);
void fill(const Kernel& kernel, const KernelCall& call);
void sgd_momentum(const Kernel& kernel, const KernelCall& call);
void prelu_forward(const Kernel& kernel, const KernelCall& call);
void prelu_backward(const Kernel& kernel, const KernelCall& call);
void prelu_gradient(const Kernel& kernel, const KernelCall& call);
void softmax_forward(const Kernel& kernel, const KernelCall& call);
void softmax_backward(const Kernel& kernel, const KernelCall& call);
void local_response_forward(const Kernel& kernel, const KernelCall& call);
void local_response_backward(const Kernel& kernel, const KernelCall& call);
void dice_sums(const Kernel& kernel, const KernelCall& call);
void dice_loss(const Kernel& kernel, const KernelCall& call);
void batch_norm_moments(const Kernel& kernel, const KernelCall& call);
void running_average(const Kernel& kernel, const KernelCall& call);
void batch_norm_inference(const Kernel& kernel, const KernelCall& call);

/// What the local response kernels need: a row and its neighbourhoods per thread.
Bytes local_response_workspace(const Kernel& kernel);
void sgd(const Kernel& kernel, const KernelCall& call);
void sgd_nesterov(const Kernel& kernel, const KernelCall& call);
void adam(const Kernel& kernel, const KernelCall& call);
void adamw(const Kernel& kernel, const KernelCall& call);
void squared_norms(const Kernel& kernel, const KernelCall& call);
void lars(const Kernel& kernel, const KernelCall& call);

/// CopyRegion, its loops merged once and for all.
std::unique_ptr<HostKernel> prepare_copy(const Kernel& kernel);
/// UpsampleForward and UpsampleBackward, what each row mixes worked out once and for all.
std::unique_ptr<HostKernel> prepare_upsampling(const Kernel& kernel);

}  // namespace stratplan::cpu
