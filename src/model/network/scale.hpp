#pragma once
// The enlargement of an upsampling along one dimension. partition/halo.hpp says which input
// interval an output interval needs.
#include <cstdint>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

/// Output position p lies at position (p + 1/2) / factor - 1/2 of the input, where positions count
/// from the centre of the first element. Nearest mode copies the nearest element. Linear mode
/// interpolates between the two elements around the position. Beyond the ends, the first or last
/// element is used.
struct Scale {
  std::int64_t factor = 1;
  bool linear = false;  ///< linear mode; else nearest mode
  /// In a local piece, the position of the first output element. Positions count from the first
  /// output element that belongs to the piece's first input element.
  std::int64_t phase = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"factor", &Scale::factor}, Field{"linear", &Scale::linear},
                      Field{"phase", &Scale::phase});
  }
  friend constexpr bool operator==(const Scale&, const Scale&) = default;
  friend constexpr auto operator<=>(const Scale&, const Scale&) = default;
};

/// The positions of the two input elements that one output element of a piece reads, and the weight
/// of the second one. `before` equals `after` if only one element is read.
struct Mixture {
  std::int64_t before = 0,
               after = 0;  ///< both may lie one beyond an end; the end's element is then used
  double share = 0;        ///< weight of `after`; the weight of `before` is 1 - share
  friend constexpr bool operator==(const Mixture&, const Mixture&) = default;
};
constexpr Mixture mixture(const Scale& scale, std::int64_t position) {
  const std::int64_t p = position + scale.phase;
  if (!scale.linear) return {p / scale.factor, p / scale.factor, 0};
  // Distances are counted in halves of an output element. They start at the centre of input element
  // -1, so that they are never negative.
  const std::int64_t halves = 2 * p + 1 + scale.factor, whole = 2 * scale.factor;
  const std::int64_t before = halves / whole - 1, rest = halves % whole;
  return {before, before + (rest > 0), static_cast<double>(rest) / static_cast<double>(whole)};
}

}  // namespace stratplan
