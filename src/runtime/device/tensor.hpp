#pragma once
// Dense tensors in host memory, channels last. Activations are (N, D, H, W, C). Weights are
// (F, kD, kH, kW, C), with F in the place of N.
#include <cstdint>
#include <string>
#include <vector>

#include "model/network/scale.hpp"
#include "model/partition/interval.hpp"

namespace stratplan {

/// A whole tensor in logical order, row-major. For example, "conv1.weights" is (F, C, kD, kH, kW).
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// Returns the index of the first channel at (n, d, h, w) in a channels-last tensor of this shape.
constexpr std::int64_t row_begin(const Shape& shape, std::int64_t n, std::int64_t d, std::int64_t h,
                                 std::int64_t w) {
  return (((n * shape[Axis::D] + d) * shape[Axis::H] + h) * shape[Axis::W] + w) * shape[Axis::C];
}

/// Calls row(local, global, count) for each run of channels of `region`: `count` elements that
/// start at element `local` of the region's own dense buffer and at element `global` of the whole
/// tensor. Positions beyond the tensor are those at its other end.
template <class Row>
void for_each_row(const Region& region, const Shape& whole, Row row) {
  const std::int64_t count = region[Axis::C].size();
  std::int64_t local = 0;
  for (std::int64_t n = region[Axis::N].begin; n < region[Axis::N].end; ++n)
    for (std::int64_t d = region[Axis::D].begin; d < region[Axis::D].end; ++d)
      for (std::int64_t h = region[Axis::H].begin; h < region[Axis::H].end; ++h)
        for (std::int64_t w = region[Axis::W].begin; w < region[Axis::W].end; ++w, local += count)
          row(local,
              row_begin(whole, n, inside(Ends::Wrap, d, whole[Axis::D]),
                        inside(Ends::Wrap, h, whole[Axis::H]),
                        inside(Ends::Wrap, w, whole[Axis::W])) +
                  region[Axis::C].begin,
              count);
}

/// Converts a tensor from channels last to the logical order (N, C, D, H, W).
std::vector<float> to_logical_order(const std::vector<float>& channels_last, const Shape& shape);

/// Returns the elements of `region`, channels last, of a whole tensor in the logical order.
std::vector<float> block_of(const std::vector<float>& logical, const Region& region,
                            const Shape& whole);

/// Returns the Euclidean norm, summed in double.
double norm(const std::vector<float>& values);

}  // namespace stratplan
