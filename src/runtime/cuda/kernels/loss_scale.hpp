#pragma once
// Kernels for the loss scale of 16-bit gradients. reference/loss_scale.cpp says why a scale is
// needed.
#include <cmath>

#include "runtime/cuda/kernels/support/strips.hpp"
#include "runtime/device/kernel_call.hpp"
#include "runtime/device/loss_scaling.hpp"

namespace stratplan::cuda_kernels {

/// A launch whose work is skipped if `overflows` counts any overflow. If `overflows` is null, the
/// work is always done.
template <class Launch>
struct UnlessOverflown {
  const Launch& launch;
  const double* overflows;

  template <class Work>
  struct Careful {
    Work work;
    const double* overflows;
    SP_DEVICE void operator()(std::int64_t i) const {
      if (overflows[0] == 0) work(i);
    }
  };
  template <class Work>
  void operator()(std::int64_t count, const Work& work) const {
    overflows == nullptr ? launch(count, work) : launch(count, Careful<Work>{work, overflows});
  }
};
template <class Launch>
UnlessOverflown<Launch> unless_overflown(const Kernel& kernel, const KernelCall& call,
                                         const Launch& launch) {
  return {launch, kernel.scaled() ? static_cast<const double*>(call.reads.back()) : nullptr};
}

/// Divides the gradient by the scale and counts the elements that are not finite. For sum_strips(),
/// each element is a row of one channel.
struct UnscaleTerm {
  const float* gradient;
  float* unscaled;
  const double* scaling;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    const double scale = scaling[0];
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const float value = gradient[i];
      sum[0][0] += std::isfinite(value) ? 0 : 1;
      unscaled[i] = static_cast<float>(value / scale);
    }
  }
};
struct UnscaleFinish {
  const double* before;
  double* overflows;
  SP_DEVICE void operator()(std::int64_t, std::int64_t, const double (&sum)[1]) const {
    overflows[0] = before[0] + sum[0];
  }
};
template <class Launch>
void unscale(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  sum_strips<1>(launch, one_set(kernel.y.elements()), 1, {}, call.workspace,
                UnscaleTerm{call.read(0), call.write(0), call.read<double>(1)},
                UnscaleFinish{call.read<double>(2), call.write<double>(1)});
}

template <class Launch>
void adjust_loss_scale(const Kernel&, const KernelCall& call, const Launch& launch) {
  const double *scaling = call.read<double>(0), *overflows = call.read<double>(1);
  double* out = call.write<double>(0);
  const std::int64_t growth_steps = call.context.scale_growth_steps;
  launch(1, [scaling, overflows, out, growth_steps] SP_DEVICE(std::int64_t) {
    const LossScaling next = adjusted({scaling[0], scaling[1]}, overflows[0] > 0, growth_steps);
    out[0] = next.scale;
    out[1] = next.steps;
  });
}

}  // namespace stratplan::cuda_kernels
