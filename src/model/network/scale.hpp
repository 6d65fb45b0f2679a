#pragma once
// The enlargement of an upsampling along one dimension. Which input interval an output interval
// needs is in partition/halo.hpp.
#include <cstdint>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

/// Output position p lies at (p + 1/2) / factor - 1/2 of the input: centres of elements in both.
/// The nearest element is copied, or the two around it are mixed by their distance; beyond the ends
/// the first or last element counts.
struct Scale {
  std::int64_t factor = 1;
  bool linear = false;  ///< mixes two elements
  /// of a local piece: its first output element is the phase-th of those that begin with its first
  /// input element
  std::int64_t phase = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"factor", &Scale::factor}, Field{"linear", &Scale::linear},
                      Field{"phase", &Scale::phase});
  }
  friend constexpr bool operator==(const Scale&, const Scale&) = default;
  friend constexpr auto operator<=>(const Scale&, const Scale&) = default;
};

/// What output element p of a piece reads: the two input elements around it, the same one twice
/// where it reads one, and the later one's share.
struct Mixture {
  std::int64_t before = 0,
               after = 0;  ///< may lie one beyond either end, where the end itself counts
  double share = 0;        ///< of `after`
  friend constexpr bool operator==(const Mixture&, const Mixture&) = default;
};
constexpr Mixture mixture(const Scale& scale, std::int64_t position) {
  const std::int64_t p = position + scale.phase;
  if (!scale.linear) return {p / scale.factor, p / scale.factor, 0};
  // Counted in halves of an output element, from the centre of input element -1: never negative.
  const std::int64_t halves = 2 * p + 1 + scale.factor, whole = 2 * scale.factor;
  const std::int64_t before = halves / whole - 1, rest = halves % whole;
  return {before, before + (rest > 0), static_cast<double>(rest) / static_cast<double>(whole)};
}

}  // namespace stratplan
