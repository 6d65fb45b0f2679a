// The updates of all optimizers except SGD with momentum (element_wise.cpp). The formulas are in
// model/network/training.hpp.
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// If `decoupled`, weight decay acts on the weights, not through the gradient (AdamW).
void adam_step(const Kernel& kernel, const KernelCall& call, bool decoupled) {
  const float *weights = call.read(0), *gradient = call.read(1), *mean = call.read(2),
              *mean_square = call.read(3);
  const KernelContext& context = call.context;
  const StepNumbers& now = *context.now;
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    const double kept =
        decoupled ? weights[i] * (1 - now.learning_rate * context.weight_decay) : weights[i];
    const double g = decoupled ? gradient[i] : gradient[i] + context.weight_decay * weights[i];
    const double m = context.beta1 * mean[i] + (1 - context.beta1) * g;
    const double u = context.beta2 * mean_square[i] + (1 - context.beta2) * g * g;
    call.write(0)[i] =
        static_cast<float>(kept - now.learning_rate * (m / now.mean_bias) /
                                      (std::sqrt(u / now.square_bias) + context.epsilon));
    call.write(1)[i] = static_cast<float>(m);
    call.write(2)[i] = static_cast<float>(u);
  }
}

}  // namespace

void sgd(const Kernel& kernel, const KernelCall& call) {
  const float *weights = call.read(0), *gradient = call.read(1);
  const KernelContext& context = call.context;
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
    call.write(0)[i] =
        static_cast<float>(weights[i] - context.now->learning_rate *
                                            (gradient[i] + context.weight_decay * weights[i]));
}

void sgd_nesterov(const Kernel& kernel, const KernelCall& call) {
  const float *weights = call.read(0), *gradient = call.read(1), *velocity = call.read(2);
  const KernelContext& context = call.context;
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    const double g = gradient[i] + context.weight_decay * weights[i];
    const double next = context.momentum * velocity[i] + g;
    call.write(0)[i] =
        static_cast<float>(weights[i] - context.now->learning_rate * (g + context.momentum * next));
    call.write(1)[i] = static_cast<float>(next);
  }
}

void adam(const Kernel& kernel, const KernelCall& call) { adam_step(kernel, call, false); }
void adamw(const Kernel& kernel, const KernelCall& call) { adam_step(kernel, call, true); }

void squared_norms(const Kernel& kernel, const KernelCall& call) {
  for (std::size_t tensor = 0; tensor < 2; ++tensor) {
    double sum = 0;
    for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
      sum += double{call.read(tensor)[i]} * call.read(tensor)[i];
    call.write<double>(0)[tensor] = sum;
  }
}

void lars(const Kernel& kernel, const KernelCall& call) {
  const float *weights = call.read(0), *gradient = call.read(1), *velocity = call.read(2);
  const KernelContext& context = call.context;
  const double scale = lars_scale(call.read<double>(3), context);
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    const double next =
        context.momentum * velocity[i] + scale * (gradient[i] + context.weight_decay * weights[i]);
    call.write(0)[i] = static_cast<float>(weights[i] - context.now->learning_rate * next);
    call.write(1)[i] = static_cast<float>(next);
  }
}

}  // namespace stratplan::reference
