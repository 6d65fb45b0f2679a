// Element-wise kernels. An output may be one of the inputs, element for element, so loops are
// marked ivdep and pointers are not restrict.
#include <cmath>

#include "model/base/philox.hpp"
#include "runtime/cpu/kernels.hpp"
#include "runtime/device/tensor.hpp"

namespace stratplan::cpu {
namespace {

SP_CLONES void add_run(const float* a, const float* b, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

struct SgdRates {
  float learning_rate, momentum, weight_decay;
};

SP_CLONES void sgd_run(const float* weights, const float* gradient, const float* velocity,
                       float* new_weights, float* new_velocity, SgdRates rates,
                       std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float next = rates.momentum * velocity[i] + gradient[i] + rates.weight_decay * weights[i];
    new_weights[i] = weights[i] - rates.learning_rate * next;
    new_velocity[i] = next;
  }
}

/// Applies dropout to a run of `count` elements that starts at global element `first`. Four
/// consecutive elements share a block of random numbers.
void dropout_run(const RandomStream& random, std::uint64_t first, double probability,
                 const float* x, float* y, std::int64_t count) {
  const float scale = static_cast<float>(1 / (1 - probability));
  PhiloxBlock words{};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    if (i == 0 || element % 4 == 0) words = random.words(element / 4);
    y[i] = RandomStream::unit(words[element % 4]) >= probability ? x[i] * scale : 0;
  }
}

}  // namespace

/// The destination may be any of the reads. The sum of a few elements at a time is therefore built
/// in a separate buffer.
void add(const Kernel& kernel, const KernelCall& call) {
  if (call.reads.size() == 2) {
    in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
      add_run(call.read(0) + begin, call.read(1) + begin, call.write(0) + begin, end - begin);
    });
    return;
  }
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    float sum[1024];
    for (std::int64_t start = begin; start < end; start += 1024) {
      const std::int64_t count = std::min<std::int64_t>(1024, end - start);
      std::copy_n(call.read(0) + start, count, sum);
      for (std::size_t input = 1; input < call.reads.size(); ++input)
        add_run(sum, call.read(input) + start, sum, count);
      std::copy_n(sum, count, call.write(0) + start);
    }
  });
}

void dropout(const Kernel& kernel, const KernelCall& call) {
  const RandomStream random(call.context.seed, call.context.layer, call.context.now->step);
  SP_ASSERT(call.context.region.shape() == kernel.x,
            "the shape of the kernel {} is not that of the region {}", kernel.key(),
            to_string(call.context.region));
  for_each_row(call.context.region, call.context.global,
               [&](std::int64_t local, std::int64_t global, std::int64_t count) {
                 dropout_run(random, static_cast<std::uint64_t>(global),
                             kernel.as<DropoutAttributes>().probability, call.read(0) + local,
                             call.write(0) + local, count);
               });
}

void sgd_momentum(const Kernel& kernel, const KernelCall& call) {
  const KernelContext& context = call.context;
  const SgdRates rates{static_cast<float>(context.now->learning_rate),
                       static_cast<float>(context.momentum),
                       static_cast<float>(context.weight_decay)};
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    sgd_run(call.read(0) + begin, call.read(1) + begin, call.read(2) + begin, call.write(0) + begin,
            call.write(1) + begin, rates, end - begin);
  });
}

}  // namespace stratplan::cpu
