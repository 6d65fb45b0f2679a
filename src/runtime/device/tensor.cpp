#include "runtime/device/tensor.hpp"

#include <cmath>

#include "model/base/assert.hpp"

namespace stratplan {

std::vector<float> to_logical_order(const std::vector<float>& channels_last, const Shape& shape) {
  SP_ASSERT(std::ssize(channels_last) == shape.elements(),
            "the tensor has {} values, but its shape has {} elements", channels_last.size(),
            shape.elements());
  std::vector<float> logical(channels_last.size());
  const std::int64_t channels = shape[Axis::C];
  const std::int64_t positions = shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
  for (std::int64_t n = 0; n < shape[Axis::N]; ++n)
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t c = 0; c < channels; ++c)
        logical[static_cast<std::size_t>((n * channels + c) * positions + position)] =
            channels_last[static_cast<std::size_t>((n * positions + position) * channels + c)];
  return logical;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace stratplan
