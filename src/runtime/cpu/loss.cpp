// Losses: sums in double, in the order of the rows.
#include <cmath>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

void softmax_cross_entropy(const Kernel& kernel, const HostCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    float* dx = call.write(1) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    const float largest = *std::max_element(x, x + classes);
    const double at_label = x[label];
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += dx[c] = std::exp(x[c] - largest);
    loss += std::log(sum) + double{largest} - at_label;
    const float factor = static_cast<float>(1 / (sum * kernel.scalar));
    for (std::int64_t c = 0; c < classes; ++c) dx[c] *= factor;
    dx[label] -= static_cast<float>(1 / kernel.scalar);
  }
  *call.write<double>(0) = loss / kernel.scalar;
}

void mean_squared_error(const Kernel& kernel, const HostCall& call) {
  const float *x = call.read(0), *target = call.read(1);
  const double factor = 2 / kernel.scalar;
  double loss = 0;
  for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
    const double difference = double{x[i]} - target[i];
    loss += difference * difference;
    call.write(1)[i] = static_cast<float>(factor * difference);
  }
  *call.write<double>(0) = loss / kernel.scalar;
}

}  // namespace stratplan::cpu
