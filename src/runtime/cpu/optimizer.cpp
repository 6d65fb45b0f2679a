// All optimizers except SGD with momentum (element_wise.cpp). The formulas are in
// model/network/training.hpp. Updates are element-wise and in place, so loops are marked ivdep and
// pointers are not restrict.
#include <cmath>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {
namespace {

struct Rates {
  explicit Rates(const KernelContext& context)
      : learning_rate(static_cast<float>(context.now->learning_rate)),
        momentum(static_cast<float>(context.momentum)),
        weight_decay(static_cast<float>(context.weight_decay)) {}
  float learning_rate, momentum, weight_decay;
};

SP_CLONES void sgd_run(const float* weights, const float* gradient, float* new_weights, Rates rates,
                       std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i)
    new_weights[i] =
        weights[i] - rates.learning_rate * (gradient[i] + rates.weight_decay * weights[i]);
}

SP_CLONES void nesterov_run(const float* weights, const float* gradient, const float* velocity,
                            float* new_weights, float* new_velocity, Rates rates,
                            std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] + rates.weight_decay * weights[i];
    const float next = rates.momentum * velocity[i] + g;
    new_weights[i] = weights[i] - rates.learning_rate * (g + rates.momentum * next);
    new_velocity[i] = next;
  }
}

SP_CLONES void lars_run(const float* weights, const float* gradient, const float* velocity,
                        float* new_weights, float* new_velocity, Rates rates, float scale,
                        std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float next =
        rates.momentum * velocity[i] + scale * (gradient[i] + rates.weight_decay * weights[i]);
    new_weights[i] = weights[i] - rates.learning_rate * next;
    new_velocity[i] = next;
  }
}

/// Coefficients of one Adam update. They include the corrections for running means that start at
/// zero.
struct AdamRates {
  AdamRates(const KernelContext& context, bool decoupled) {
    const StepNumbers& now = *context.now;
    kept = static_cast<float>(decoupled ? 1 - now.learning_rate * context.weight_decay : 1);
    decay = static_cast<float>(decoupled ? 0 : context.weight_decay);
    beta1 = static_cast<float>(context.beta1);
    fresh1 = static_cast<float>(1 - context.beta1);
    beta2 = static_cast<float>(context.beta2);
    fresh2 = static_cast<float>(1 - context.beta2);
    rate = static_cast<float>(now.learning_rate / now.mean_bias);
    root_scale = static_cast<float>(1 / std::sqrt(now.square_bias));
    epsilon = static_cast<float>(context.epsilon);
  }
  float kept, decay, beta1, fresh1, beta2, fresh2, rate, root_scale, epsilon;
};

SP_CLONES void adam_run(const float* weights, const float* gradient, const float* mean,
                        const float* mean_square, float* new_weights, float* new_mean,
                        float* new_square, AdamRates rates, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] + rates.decay * weights[i];
    const float m = rates.beta1 * mean[i] + rates.fresh1 * g;
    const float u = rates.beta2 * mean_square[i] + rates.fresh2 * g * g;
    new_weights[i] = rates.kept * weights[i] -
                     rates.rate * m / (std::sqrt(u) * rates.root_scale + rates.epsilon);
    new_mean[i] = m;
    new_square[i] = u;
  }
}

void adam_step(const Kernel& kernel, const KernelCall& call, bool decoupled) {
  const AdamRates rates(call.context, decoupled);
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    adam_run(call.read(0) + begin, call.read(1) + begin, call.read(2) + begin, call.read(3) + begin,
             call.write(0) + begin, call.write(1) + begin, call.write(2) + begin, rates,
             end - begin);
  });
}

/// Returns the sum of squares. There are eight partial sums, whatever the vector length, so that
/// every machine adds in the same order.
SP_CLONES double sum_of_squares(const float* values, std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

void sgd(const Kernel& kernel, const KernelCall& call) {
  const Rates rates(call.context);
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    sgd_run(call.read(0) + begin, call.read(1) + begin, call.write(0) + begin, rates, end - begin);
  });
}

void sgd_nesterov(const Kernel& kernel, const KernelCall& call) {
  const Rates rates(call.context);
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    nesterov_run(call.read(0) + begin, call.read(1) + begin, call.read(2) + begin,
                 call.write(0) + begin, call.write(1) + begin, rates, end - begin);
  });
}

void adam(const Kernel& kernel, const KernelCall& call) { adam_step(kernel, call, false); }
void adamw(const Kernel& kernel, const KernelCall& call) { adam_step(kernel, call, true); }

void squared_norms(const Kernel& kernel, const KernelCall& call) {
  for (std::size_t tensor = 0; tensor < 2; ++tensor)
    call.write<double>(0)[tensor] = sum_of_squares(call.read(tensor), kernel.y.elements());
}

void lars(const Kernel& kernel, const KernelCall& call) {
  const Rates rates(call.context);
  const float scale = static_cast<float>(lars_scale(call.read<double>(3), call.context));
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    lars_run(call.read(0) + begin, call.read(1) + begin, call.read(2) + begin,
             call.write(0) + begin, call.write(1) + begin, rates, scale, end - begin);
  });
}

}  // namespace stratplan::cpu
