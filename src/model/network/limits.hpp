#pragma once
// The largest numbers that a network may state, in a file, an ONNX model or on the command line.
// finish_network checks every network against all limits. schemas/network.schema.json states
// largest_extent too. Within the limits, sizes are computed in 64 bits without overflow checks.
#include <cstdint>

namespace stratplan {

/// Limit for samples, channels, filters, groups; positions along an axis, padding included;
/// kernels, strides, dilations, dilated windows, paddings and scales.
inline constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;
/// Limit for the elements of one tensor, padding included: 1 PiB of floats.
inline constexpr std::int64_t largest_tensor = std::int64_t{1} << 48;
/// Limit for the elements of all layers' outputs and weights together. The sizes of a program's
/// buffers then stay within 64 bits: they hold each element a few times, in at most 8 bytes.
inline constexpr std::int64_t largest_network = std::int64_t{1} << 56;

/// Multiplies `product` by `factor`, both at least 0. Returns false, and leaves `product` as it
/// was, if the result would exceed `largest`.
constexpr bool multiply_within(std::int64_t& product, std::int64_t factor, std::int64_t largest) {
  if (factor > 0 && product > largest / factor) return false;
  product *= factor;
  return true;
}

}  // namespace stratplan
