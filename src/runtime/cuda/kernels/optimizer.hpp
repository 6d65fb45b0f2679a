#pragma once
// The optimizers; the formulas are in model/network/training.hpp. Coefficients are computed in
// double, updates in float. Values that change from one training step to the next are read from
// device memory (StepNumbers), because a captured launch keeps its arguments.
#include <cmath>

#include "runtime/cuda/kernels/loss_scale.hpp"
#include "runtime/cuda/kernels/support/elements.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"

namespace stratplan::cuda_kernels {

/// The coefficients of an update. Each optimizer uses only the coefficients in its formula.
struct Rates {
  const StepNumbers* now;
  float momentum, decay;
  explicit Rates(const KernelContext& context)
      : now(context.now),
        momentum(static_cast<float>(context.momentum)),
        decay(static_cast<float>(context.weight_decay)) {}
  SP_DEVICE float rate() const { return static_cast<float>(now->learning_rate); }
};

// Each step updates one element. x holds the weight, the gradient and the state. y gets the new
// weight and the new state.
struct SgdStep {
  Rates rates;
  SP_DEVICE void operator()(const float (&x)[2], float (&y)[1]) const {
    y[0] = x[0] - rates.rate() * (x[1] + rates.decay * x[0]);
  }
};
struct MomentumStep {
  Rates rates;
  SP_DEVICE void operator()(const float (&x)[3], float (&y)[2]) const {
    y[1] = rates.momentum * x[2] + (x[1] + rates.decay * x[0]);
    y[0] = x[0] - rates.rate() * y[1];
  }
};
struct NesterovStep {
  Rates rates;
  SP_DEVICE void operator()(const float (&x)[3], float (&y)[2]) const {
    const float gradient = x[1] + rates.decay * x[0];
    y[1] = rates.momentum * x[2] + gradient;
    y[0] = x[0] - rates.rate() * (gradient + rates.momentum * y[1]);
  }
};

/// `decoupled`: whether the decay acts on the weights directly, and not through the gradient.
/// rate() and root() correct the bias of the running means.
struct AdamStep {
  const StepNumbers* now;
  double decoupled_decay;
  float epsilon, decay, beta1, rest1, beta2, rest2;

  AdamStep(const KernelContext& context, bool decoupled)
      : now(context.now), decoupled_decay(decoupled ? context.weight_decay : 0) {
    epsilon = static_cast<float>(context.epsilon);
    decay = static_cast<float>(decoupled ? 0 : context.weight_decay);
    beta1 = static_cast<float>(context.beta1);
    rest1 = static_cast<float>(1 - context.beta1);
    beta2 = static_cast<float>(context.beta2);
    rest2 = static_cast<float>(1 - context.beta2);
  }
  SP_DEVICE void operator()(const float (&x)[4], float (&y)[3]) const {
    const float gradient = x[1] + decay * x[0];
    y[1] = beta1 * x[2] + rest1 * gradient;
    y[2] = beta2 * x[3] + rest2 * gradient * gradient;
    y[0] = kept() * x[0] - rate() * y[1] / (std::sqrt(y[2]) * root() + epsilon);
  }
  SP_DEVICE float kept() const {
    return static_cast<float>(1 - now->learning_rate * decoupled_decay);
  }
  SP_DEVICE float rate() const { return static_cast<float>(now->learning_rate / now->mean_bias); }
  SP_DEVICE float root() const { return static_cast<float>(1 / std::sqrt(now->square_bias)); }
};

/// Scales the gradient by a ratio of norms, which are in device memory.
struct LarsStep {
  Rates rates;
  double trust, decay;
  const double* squared_norms;

  SP_DEVICE void operator()(const float (&x)[3], float (&y)[2]) const {
    y[1] = rates.momentum * x[2] + scale() * (x[1] + rates.decay * x[0]);
    y[0] = x[0] - rates.rate() * y[1];
  }
  /// Returns the factor of the gradient. It is 1 if either norm is zero (a fresh or a frozen
  /// tensor).
  SP_DEVICE float scale() const {
    const double weights = std::sqrt(squared_norms[0]), gradient = std::sqrt(squared_norms[1]);
    return weights > 0 && gradient > 0
               ? static_cast<float>(trust * weights / (gradient + decay * weights))
               : 1;
  }
};

/// Applies `step` to each element of the weights. The step reads the first `reads` tensors of the
/// call and writes the first `writes` tensors. Nothing is written if a gradient has overflowed. The
/// count of overflows is in device memory.
template <int reads, int writes, class Launch, class Step>
void for_weights(const Kernel& kernel, const KernelCall& call, const Launch& launch,
                 const Step& step) {
  Streams<float, reads, writes> streams{};
  for (int i = 0; i < reads; ++i) streams.from[i] = call.read(static_cast<std::size_t>(i));
  for (int i = 0; i < writes; ++i) streams.to[i] = call.write(static_cast<std::size_t>(i));
  for_elements<float, reads, writes>(unless_overflown(kernel, call, launch), kernel.y.elements(),
                                     streams, step);
}

template <class Launch>
void sgd(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_weights<2, 1>(kernel, call, launch, SgdStep{Rates(call.context)});
}
template <class Launch>
void sgd_momentum(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_weights<3, 2>(kernel, call, launch, MomentumStep{Rates(call.context)});
}
template <class Launch>
void sgd_nesterov(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_weights<3, 2>(kernel, call, launch, NesterovStep{Rates(call.context)});
}
template <class Launch>
void adam(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_weights<4, 3>(kernel, call, launch, AdamStep(call.context, false));
}
template <class Launch>
void adamw(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  for_weights<4, 3>(kernel, call, launch, AdamStep(call.context, true));
}
template <class Launch>
void lars(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const KernelContext& context = call.context;
  for_weights<3, 2>(
      kernel, call, launch,
      LarsStep{Rates(context), context.trust, context.weight_decay, call.read<double>(3)});
}

/// Sums the squares of all elements, which count as rows of one channel.
struct SquaredNormsTerm {
  const float *weights, *gradient;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[2][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      sum[0][0] += double{weights[i]} * weights[i];
      sum[1][0] += double{gradient[i]} * gradient[i];
    }
  }
};
struct SquaredNormsFinish {
  double* norms;
  SP_DEVICE void operator()(std::int64_t, std::int64_t, const double (&sum)[2]) const {
    norms[0] = sum[0];
    norms[1] = sum[1];
  }
};
template <class Launch>
void squared_norms(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  sum_strips<2>(launch, one_set(kernel.y.elements()), 1, {}, call.workspace,
                SquaredNormsTerm{call.read(0), call.read(1)},
                SquaredNormsFinish{call.write<double>(0)});
}

}  // namespace stratplan::cuda_kernels
