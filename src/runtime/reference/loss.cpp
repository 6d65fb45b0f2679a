// Losses are means over `scalar` terms of the whole batch; each rank sums its own terms.
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {

void softmax_cross_entropy(const Kernel& kernel, const HostCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    const double largest = *std::max_element(x, x + classes);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    loss += std::log(sum) + largest - x[label];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(x[c] - largest) / sum;
      call.write(1)[row * classes + c] = static_cast<float>((p - (c == label ? 1 : 0)) / kernel.scalar);
    }
  }
  *call.write<double>(0) = loss / kernel.scalar;
}

void mean_squared_error(const Kernel& kernel, const HostCall& call) {
  double loss = 0;
  for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
    const double difference = double{call.read(0)[i]} - call.read(1)[i];
    loss += difference * difference;
    call.write(1)[i] = static_cast<float>(2 * difference / kernel.scalar);
  }
  *call.write<double>(0) = loss / kernel.scalar;
}

}  // namespace stratplan::reference
