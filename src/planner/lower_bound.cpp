#include "planner/lower_bound.hpp"

#include <algorithm>

namespace stratplan {

Bytes least_conceivable_memory(const Network& network, std::int64_t ranks,
                               const Execution& execution, const FreeMemoryOptions& free) {
  const std::int64_t samples = free.micro_batches ? 1 : network.micro_batch();
  std::int64_t largest = 0;
  for (const Layer& layer : network.layers)
    if (is_contraction(layer.kind))
      largest = std::max(largest, layer.output.elements() / layer.output[Axis::N]);
  const std::int64_t parameters =
      network.parameter_count() * (2 + optimizer_states(network.training.optimizer));
  const auto share = [&](std::int64_t elements, DataType type) {
    return Bytes{(elements + ranks - 1) / ranks * size_of(type)};
  };
  return share(parameters, DataType::F32) +
         share(largest * samples, execution.precision.activations);
}

}  // namespace stratplan
