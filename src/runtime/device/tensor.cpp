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

std::vector<float> block_of(const std::vector<float>& logical, const Region& region,
                            const Shape& whole) {
  std::vector<float> block(static_cast<std::size_t>(region.elements()));
  const std::int64_t channels = whole[Axis::C],
                     positions = whole[Axis::D] * whole[Axis::H] * whole[Axis::W];
  for_each_row(region, whole, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
    const std::int64_t row = global / channels, first = global % channels;  // row: (n, position)
    const std::int64_t begin = (row / positions * channels + first) * positions + row % positions;
    for (std::int64_t i = 0; i < count; ++i)
      block[static_cast<std::size_t>(local + i)] =
          logical[static_cast<std::size_t>(begin + i * positions)];
  });
  return block;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace stratplan
