#pragma once
// The largest numbers that a network may state, in a file, an ONNX model or on the command line.
// finish_network checks every network against all limits. schemas/network.schema.json also states
// largest_extent. Code that reads a checked network computes sizes in 64 bits without overflow
// checks.
#include <cstdint>

namespace stratplan {

/// Limit for each extent of a network. Extents are the numbers of samples, channels, filters and
/// groups, and of positions along an axis, padding included. Kernels, strides, dilations, dilated
/// windows, paddings and scales are extents too.
inline constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;
/// Limit for the elements of one tensor, padding included. This many floats take 1 PiB.
inline constexpr std::int64_t largest_tensor = std::int64_t{1} << 48;
/// Limit for the elements of all layers' outputs and weights together. A program's buffers hold
/// each element a few times, in at most 8 bytes, so the sizes of all buffers stay within 64 bits.
inline constexpr std::int64_t largest_network = std::int64_t{1} << 56;

/// Multiplies `product` by `factor`, both at least 0. Returns false, and leaves `product` as it
/// was, if the result would exceed `largest`.
constexpr bool multiply_within(std::int64_t& product, std::int64_t factor, std::int64_t largest) {
  if (factor > 0 && product > largest / factor) return false;
  product *= factor;
  return true;
}

}  // namespace stratplan
