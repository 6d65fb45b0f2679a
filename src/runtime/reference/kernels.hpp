#pragma once
// The reference kernels. They loop as their definitions say, and sum in double. Every other backend
// is compared with them.
#include <algorithm>
#include <array>
#include <span>

#include "model/base/assert.hpp"
#include "runtime/device/host_backend.hpp"

namespace stratplan::reference {

/// Indices (n, c, d, h, w) into a dense channels-last tensor.
using Index = std::array<std::int64_t, axis_count>;

constexpr std::int64_t offset(const Shape& shape, const Index& i) {
  return (((i[0] * shape[Axis::D] + i[2]) * shape[Axis::H] + i[3]) * shape[Axis::W] + i[4]) *
             shape[Axis::C] +
         i[1];
}

/// Calls visit(index) for every index below `shape`, in memory order.
template <class Visit>
void for_each_index(const Shape& shape, Visit visit) {
  Index i{};
  for (i[0] = 0; i[0] < shape[Axis::N]; ++i[0])
    for (i[2] = 0; i[2] < shape[Axis::D]; ++i[2])
      for (i[3] = 0; i[3] < shape[Axis::H]; ++i[3])
        for (i[4] = 0; i[4] < shape[Axis::W]; ++i[4])
          for (i[1] = 0; i[1] < shape[Axis::C]; ++i[1]) visit(i);
}

/// Calls visit(tap, input) for every element of the window at output position `output`, except
/// padding. `tap` is the element's row-major place in the window. `input` is its index in x, with
/// the n and c of `output`.
template <class Visit>
void for_each_tap(const Kernel& kernel, const Index& output, Visit visit) {
  const Windows& windows = kernel.windows();
  std::int64_t tap = 0;
  const auto at = [&](int axis, std::int64_t k) {
    const Window& w = windows[static_cast<std::size_t>(axis)];
    return output[static_cast<std::size_t>(axis) + 2] * w.stride - w.pad_before + k * w.dilation;
  };
  const auto inside = [&](Axis axis, std::int64_t position) {
    return position >= 0 && position < kernel.x[axis];
  };
  for (std::int64_t kd = 0; kd < windows[0].kernel; ++kd)
    for (std::int64_t kh = 0; kh < windows[1].kernel; ++kh)
      for (std::int64_t kw = 0; kw < windows[2].kernel; ++kw, ++tap) {
        const Index input{output[0], output[1], at(0, kd), at(1, kh), at(2, kw)};
        if (inside(Axis::D, input[2]) && inside(Axis::H, input[3]) && inside(Axis::W, input[4]))
          visit(tap, input);
      }
}

/// Returns `count` sums in double, set to zero, in the kernel's workspace. There is one sum per
/// element of the kernel's first write.
inline std::span<double> sums_of(const KernelCall& call, std::int64_t count) {
  SP_ASSERT(call.workspace, "workspace_of() in reference_backend.cpp omits a kernel of {} sums",
            count);
  const std::span sums(static_cast<double*>(call.workspace), static_cast<std::size_t>(count));
  std::ranges::fill(sums, 0.0);
  return sums;
}

/// Calls visit(index of the first element) for each run of channels of x.
template <class Visit>
void for_each_row(const Kernel& kernel, Visit visit) {
  for (std::int64_t row = 0; row < kernel.x.elements(); row += kernel.x[Axis::C]) visit(row);
}

inline std::int64_t taps(const Kernel& kernel) {
  const auto& [d, h, w] = kernel.windows();
  return d.kernel * h.kernel * w.kernel;
}

/// Returns the kernel's activation of x, or x if the kernel has no activation. x and the result are
/// rounded to float, as between two layers.
inline float activated(const Kernel& kernel, float x) {
  const double slope = kernel.epilogue().slope();
  return x > 0 || slope == 1 ? x : slope == 0 ? 0 : static_cast<float>(x * slope);
}
/// Returns the gradient of the activation's input. `dy` is the gradient of the activation's output
/// `y`. `y` is not read if the kernel has no activation.
inline float through_activation(const Kernel& kernel, const float* y, std::int64_t i, float dy) {
  const double slope = kernel.epilogue().slope();
  if (slope == 1 || y[i] > 0) return dy;
  return slope == 0 ? 0 : static_cast<float>(dy * slope);
}

void convolution_forward(const Kernel& kernel, const KernelCall& call);
void convolution_backward_data(const Kernel& kernel, const KernelCall& call);
void convolution_backward_filter(const Kernel& kernel, const KernelCall& call);
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
void label_weights(const Kernel& kernel, const KernelCall& call);
void weighted_cross_entropy(const Kernel& kernel, const KernelCall& call);
void elementwise_loss(const Kernel& kernel, const KernelCall& call);
void copy_region(const Kernel& kernel, const KernelCall& call);
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
void reduce_forward(const Kernel& kernel, const KernelCall& call);
void reduce_backward(const Kernel& kernel, const KernelCall& call);
/// RearrangeForward and RearrangeBackward.
void rearrange(const Kernel& kernel, const KernelCall& call);
void upsample_forward(const Kernel& kernel, const KernelCall& call);
void upsample_backward(const Kernel& kernel, const KernelCall& call);
void sgd(const Kernel& kernel, const KernelCall& call);
void sgd_nesterov(const Kernel& kernel, const KernelCall& call);
void adam(const Kernel& kernel, const KernelCall& call);
void adamw(const Kernel& kernel, const KernelCall& call);
void squared_norms(const Kernel& kernel, const KernelCall& call);
void lars(const Kernel& kernel, const KernelCall& call);
void batch_norm_moments(const Kernel& kernel, const KernelCall& call);
void running_average(const Kernel& kernel, const KernelCall& call);
void batch_norm_running_sums(const Kernel& kernel, const KernelCall& call);
void batch_norm_inference(const Kernel& kernel, const KernelCall& call);
void convert(const Kernel& kernel, const KernelCall& call);
void widen(const Kernel& kernel, const KernelCall& call);
void unscale(const Kernel& kernel, const KernelCall& call);
void adjust_loss_scale(const Kernel& kernel, const KernelCall& call);

}  // namespace stratplan::reference
