// Pooling and reductions. Padding never wins a maximum. Of equal elements the first in the window
// wins. A window that reads only padding gives 0.
#include <limits>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

double divisor(const Kernel& kernel, const Index& output) {
  std::int64_t count = 0;
  for_each_tap(kernel, output, [&](std::int64_t, const Index&) { ++count; });
  return static_cast<double>(kernel.as<PoolAttributes>().count_padding ? taps(kernel) : count);
}

}  // namespace

void max_pool_forward(const Kernel& kernel, const KernelCall& call) {
  const float* x = call.read(0);
  for_each_index(kernel.y, [&](const Index& output) {
    float best = 0;
    std::int32_t index = -1;
    for_each_tap(kernel, output, [&](std::int64_t tap, const Index& input) {
      const float value = x[offset(kernel.x, input)];
      if (index >= 0 && !(value > best)) return;
      best = value;
      index = static_cast<std::int32_t>(tap);
    });
    call.write(0)[offset(kernel.y, output)] = best;
    call.write<std::int32_t>(1)[offset(kernel.y, output)] = index < 0 ? 0 : index;
  });
}

void max_pool_backward(const Kernel& kernel, const KernelCall& call) {
  const float* dy = call.read(0);
  const auto* index = call.read<std::int32_t>(1);
  const std::span<double> dx = sums_of(call, kernel.x.elements());
  for_each_index(kernel.y, [&](const Index& output) {
    const std::int64_t o = offset(kernel.y, output);
    for_each_tap(kernel, output, [&](std::int64_t tap, const Index& input) {
      if (tap == index[o]) dx[static_cast<std::size_t>(offset(kernel.x, input))] += dy[o];
    });
  });
  for (std::size_t i = 0; i < dx.size(); ++i) call.write(0)[i] = static_cast<float>(dx[i]);
}

void average_pool_forward(const Kernel& kernel, const KernelCall& call) {
  const float* x = call.read(0);
  for_each_index(kernel.y, [&](const Index& output) {
    double sum = 0;
    for_each_tap(kernel, output,
                 [&](std::int64_t, const Index& input) { sum += x[offset(kernel.x, input)]; });
    const double count = divisor(kernel, output);
    call.write(0)[offset(kernel.y, output)] = count == 0 ? 0 : static_cast<float>(sum / count);
  });
}

void average_pool_backward(const Kernel& kernel, const KernelCall& call) {
  const float* dy = call.read(0);
  const std::span<double> dx = sums_of(call, kernel.x.elements());
  for_each_index(kernel.y, [&](const Index& output) {
    const double share = dy[offset(kernel.y, output)] / divisor(kernel, output);
    for_each_tap(kernel, output, [&](std::int64_t, const Index& input) {
      dx[static_cast<std::size_t>(offset(kernel.x, input))] += share;
    });
  });
  for (std::size_t i = 0; i < dx.size(); ++i) call.write(0)[i] = static_cast<float>(dx[i]);
}

void spatial_mean_forward(const Kernel& kernel, const KernelCall& call) {
  const double positions = kernel.as<MeanAttributes>().positions;
  const std::span<double> sums = sums_of(call, kernel.x[Axis::N] * kernel.x[Axis::C]);
  for_each_index(kernel.x, [&](const Index& i) {
    sums[static_cast<std::size_t>(i[0] * kernel.x[Axis::C] + i[1])] +=
        call.read(0)[offset(kernel.x, i)];
  });
  for (std::size_t i = 0; i < sums.size(); ++i)
    call.write(0)[i] = static_cast<float>(sums[i] / positions);
}

void spatial_mean_backward(const Kernel& kernel, const KernelCall& call) {
  const double positions = kernel.as<MeanAttributes>().positions;
  for_each_index(kernel.x, [&](const Index& i) {
    call.write(0)[offset(kernel.x, i)] =
        static_cast<float>(call.read(0)[i[0] * kernel.x[Axis::C] + i[1]] / positions);
  });
}

namespace {

/// The index in y of the element to which the element of x at `input` is reduced.
Index reduced(const Kernel& kernel, Index input) {
  for (const Axis axis : all_axes)
    if (auto& at = input[static_cast<std::size_t>(axis)]; kernel.y[axis] == 1) at = 0;
  return input;
}

/// The greatest of the terms of an element of y, and how many terms equal it.
struct Greatest {
  float value = -std::numeric_limits<float>::infinity();
  int times = 0;
};

std::vector<Greatest> greatest_terms(const Kernel& kernel, const float* x) {
  std::vector<Greatest> all(static_cast<std::size_t>(kernel.y.elements()));
  for_each_index(kernel.x, [&](const Index& i) {
    const float value = x[offset(kernel.x, i)];
    Greatest& found = all[static_cast<std::size_t>(offset(kernel.y, reduced(kernel, i)))];
    if (value > found.value) found = {value, 0};
    if (value == found.value) ++found.times;
  });
  return all;
}

}  // namespace

void reduce_forward(const Kernel& kernel, const KernelCall& call) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  const bool greatest = function == Reduction::Max;
  const std::span<double> made = sums_of(call, kernel.y.elements());
  if (greatest) std::ranges::fill(made, -std::numeric_limits<double>::infinity());
  for_each_index(kernel.x, [&](const Index& i) {
    const double value = call.read(0)[offset(kernel.x, i)];
    double& to = made[static_cast<std::size_t>(offset(kernel.y, reduced(kernel, i)))];
    to = greatest ? std::max(to, value) : to + value;
  });
  for (std::size_t i = 0; i < made.size(); ++i)
    call.write(0)[i] = static_cast<float>(made[i] / divisor);
}

void reduce_backward(const Kernel& kernel, const KernelCall& call) {
  const auto& [function, divisor] = kernel.as<ReduceAttributes>();
  const float* dy = call.read(call.reads.size() - 1);
  if (function == Reduction::Max) {
    const float* x = call.read(0);
    const std::vector<Greatest> greatest = greatest_terms(kernel, x);
    return for_each_index(kernel.x, [&](const Index& i) {
      const std::int64_t from = offset(kernel.y, reduced(kernel, i)), to = offset(kernel.x, i);
      const auto& [value, times] = greatest[static_cast<std::size_t>(from)];
      call.write(0)[to] = x[to] == value ? dy[from] / static_cast<float>(times) : 0;
    });
  }
  for_each_index(kernel.x, [&, divisor = divisor](const Index& i) {
    call.write(0)[offset(kernel.x, i)] =
        static_cast<float>(dy[offset(kernel.y, reduced(kernel, i))] / divisor);
  });
}

}  // namespace stratplan::reference
