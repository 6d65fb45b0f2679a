#include <cmath>

#include "model/base/philox.hpp"
#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
void add(const Kernel& kernel, const KernelCall& call) {
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    double sum = 0;
    for (std::size_t input = 0; input < call.reads.size(); ++input) sum += call.read(input)[i];
    call.write(0)[i] = static_cast<float>(sum);
  }
}

/// An element stays if its uniform number is at least the probability of being dropped.
void dropout(const Kernel& kernel, const KernelCall& call) {
  const KernelContext& context = call.context;
  const double probability = kernel.as<DropoutAttributes>().probability;
  const RandomStream random(context.seed, context.layer, context.now->step);
  for_each_index(kernel.x, [&](const Index& local) {
    Index global = local;
    for (std::size_t axis = 0; axis < axis_count; ++axis)
      global[axis] += context.region.interval[axis].begin;
    const bool stays =
        random.uniform(static_cast<std::uint64_t>(offset(context.global, global))) >= probability;
    const std::int64_t o = offset(kernel.x, local);
    call.write(0)[o] = stays ? static_cast<float>(call.read(0)[o] / (1 - probability)) : 0;
  });
}

void sgd_momentum(const Kernel& kernel, const KernelCall& call) {
  const float *weights = call.read(0), *gradient = call.read(1), *velocity = call.read(2);
  const KernelContext& context = call.context;
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    const double next =
        context.momentum * velocity[i] + gradient[i] + context.weight_decay * weights[i];
    call.write(0)[i] = static_cast<float>(weights[i] - context.now->learning_rate * next);
    call.write(1)[i] = static_cast<float>(next);
  }
}

}  // namespace stratplan::reference
