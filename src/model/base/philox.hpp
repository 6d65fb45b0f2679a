#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC'11). A number is a pure function of its key and its counter, so
// any rank can compute any part of a random tensor.
//
//   key      two words of 32 bits, from (seed, name, step)
//   counter  from the element's index in the global tensor, row-major in memory order
//            (N, D, H, W, C)
//              uniform  word index % 4 of block index / 4   (four elements share a block)
//              normal   words 0 and 1 of block index        (counter word 2 is 1 here, so that
//                                                            normal and uniform never overlap)
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "model/base/hash.hpp"

namespace stratplan {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// The ten rounds of Philox4x32.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// All random numbers of one name ("conv1.weights", a dropout layer) in one training step.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::string_view name, std::int64_t step = 0) {
    named_ = mixed(Fnv1a().add_bytes(name).value() ^ mixed(seed));
    key_ = key_of(step);
  }

  /// Returns the random numbers of the same name in another step.
  constexpr RandomStream at(std::int64_t step) const {
    RandomStream stream = *this;
    stream.key_ = key_of(step);
    return stream;
  }

  /// Returns the uniform 32-bit words of elements [4 * block, 4 * block + 4).
  constexpr PhiloxBlock words(std::uint64_t block) const {
    return philox({low(block), high(block), 0, 0}, key_);
  }

  /// Returns a uniform number in [0, 1), a multiple of 2^-24 and so exact in float.
  constexpr float uniform(std::uint64_t element) const {
    return unit(words(element / 4)[element % 4]);
  }
  static constexpr float unit(std::uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24F;
  }

  /// Returns a uniform integer in [0, bound), by multiplication. The bias is below bound / 2^32.
  /// Requires 0 < bound <= 2^32.
  constexpr std::uint32_t below(std::uint64_t bound, std::uint64_t element) const {
    return static_cast<std::uint32_t>((bound * words(element / 4)[element % 4]) >> 32);
  }

  /// Returns a number of the standard normal distribution (Box and Muller).
  double normal(std::uint64_t element) const {
    const PhiloxBlock block = philox({low(element), high(element), 1, 0}, key_);
    const double radius = std::sqrt(-2 * std::log((block[0] + 0.5) * 0x1p-32));
    return radius * std::cos(2 * std::numbers::pi * (block[1] + 0.5) * 0x1p-32);
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
  }
  static constexpr std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
  }
  /// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
  }

  constexpr PhiloxKey key_of(std::int64_t step) const {
    const std::uint64_t hash = mixed(named_ + static_cast<std::uint64_t>(step));
    return {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)};
  }

  std::uint64_t named_ = 0;  ///< hash of seed and name
  PhiloxKey key_{};
};

}  // namespace stratplan
