#pragma once
// Reductions along whole axes. A sum is the gradient of a tensor that is broadcast along these
// axes, so sums run as gradients of functions of two tensors do.
#include "runtime/cuda/kernels/binary.hpp"

namespace stratplan::cuda_kernels {

/// y = x / divisor at each place, where the elements of x may be read repeatedly.
template <class T>
struct ShareWork {
  Repeated<T> x;
  T* y;
  float divisor;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    auto value = x.template load_at<width>(at);
    for (int k = 0; k < width; ++k) value[k] /= divisor;
    store(y + at.element, value);
  }
};

/// The greatest of a row of channels.
template <class T>
SP_DEVICE float greatest_of(const T* row, std::int64_t channels) {
  float found = row[0];
  for (std::int64_t c = 1; c < channels; ++c) {
    const float value = row[c];
    found = value > found ? value : found;
  }
  return found;
}

template <class T>
struct GreatestWork {
  const T* x;
  T* y;
  std::int64_t channels;

  SP_DEVICE void operator()(std::int64_t row) const {
    y[row] = T(greatest_of(x + row * channels, channels));
  }
};

/// Elements that equal the greatest one share its gradient equally.
template <class T>
struct GreatestGradientWork {
  const T *x, *dy;
  T* dx;
  std::int64_t channels;

  SP_DEVICE void operator()(std::int64_t row) const {
    const T* from = x + row * channels;
    const float greatest = greatest_of(from, channels), gradient = dy[row];
    float times = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      times += static_cast<float>(from[c]) == greatest ? 1.0F : 0.0F;
    for (std::int64_t c = 0; c < channels; ++c)
      dx[row * channels + c] = T(static_cast<float>(from[c]) == greatest ? gradient / times : 0.0F);
  }
};

/// The kernel whose gradient of its first input is the sum of x: that input has the shape of y.
inline Kernel broadcast_of(const Kernel& kernel) {
  return {.kind = KernelKind::BinaryBackward,
          .x = kernel.y,
          .y = kernel.x,
          .type = kernel.type,
          .attributes = Binary{BinaryFunction::BroadcastAdd, kernel.x, 0}};
}
inline Bytes reduce_workspace(const Kernel& kernel) {
  return RepeatedSum(broadcast_of(kernel)).workspace();
}

template <class T, class Launch>
void reduce_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  const T* x = call.read<T>(0);
  T* y = call.write<T>(0);
  if (function == Reduction::Max)
    return launch(kernel.y.elements(), GreatestWork<T>{x, y, kernel.x[Axis::C]});
  if (kernel.x == kernel.y)  // this rank has one term of each sum
    return for_places(launch, kernel.y, {x, y},
                      ShareWork<T>{{x, Steps(kernel.x, kernel.y)}, y, static_cast<float>(divisor)});
  binary_gradient<binary::BroadcastAdd, 0, T>(broadcast_of(kernel), call, launch, divisor);
}

template <class T, class Launch>
void reduce_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  const T* dy = call.read<T>(call.reads.size() - 1);
  T* dx = call.write<T>(0);
  if (function == Reduction::Max)
    return launch(kernel.y.elements(),
                  GreatestGradientWork<T>{call.read<T>(0), dy, dx, kernel.x[Axis::C]});
  for_places(launch, kernel.x, {dy, dx},
             ShareWork<T>{{dy, Steps(kernel.y, kernel.x)}, dx, static_cast<float>(divisor)});
}

}  // namespace stratplan::cuda_kernels
