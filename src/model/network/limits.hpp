#pragma once
// The largest numbers that a network may state, in a file, an ONNX model or on the command line.
// finish_network holds every network to them, and
// schemas/network.schema.json states the first. Within them all sizes are computed in 64 bits
// without a check.
#include <cstdint>

namespace stratplan {

/// Samples, channels, filters, groups; positions along an axis, padding included; kernels, strides,
/// dilations, dilated windows, paddings and scales.
inline constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;
/// Elements of one tensor, padding included: 1 PiB of floats.
inline constexpr std::int64_t largest_tensor = std::int64_t{1} << 48;
/// Elements of all layers' outputs and weights together: a program's buffers hold them a few times,
/// in 8 bytes each at most.
inline constexpr std::int64_t largest_network = std::int64_t{1} << 56;

/// Multiplies extents of at least 0. Returns false, and leaves `product` as it was, if the result
/// were above `largest`.
constexpr bool multiply_within(std::int64_t& product, std::int64_t factor, std::int64_t largest) {
  if (factor > 0 && product > largest / factor) return false;
  product *= factor;
  return true;
}

}  // namespace stratplan
