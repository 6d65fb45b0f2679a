#pragma once
// The map of an upsampling or a padding along one dimension, from positions of the output to
// positions of the input. Its numbers are integers, so that no rounding decides which element is
// read. partition/halo.hpp says which input interval an output interval needs.
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

/// What is read at a position beyond the first or last input element:
///   Clamp   the end's element: A A A B C C C around A B C
///   Mirror  the element as far inside the end: C B A B C B A. Requires a position less than an
///           extent beyond the end
///   Wrap    the element at the position modulo the extent: B C A B C A B
enum class Ends : std::uint8_t { Clamp, Mirror, Wrap };

inline constexpr std::array<std::string_view, 3> ends_names{"clamp", "mirror", "wrap"};
constexpr std::string_view name_of(Ends ends) { return ends_names[static_cast<std::size_t>(ends)]; }

/// Returns the position of the input element that is read for position `at`.
constexpr std::int64_t inside(Ends ends, std::int64_t at, std::int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (ends == Ends::Clamp) return at < 0 ? 0 : extent - 1;
  if (ends == Ends::Mirror) return at < 0 ? -at : 2 * (extent - 1) - at;
  return (at % extent + extent) % extent;
}

/// Output position p lies at position (step * p + start) / unit of the input, where positions count
/// from the centre of the first element. Nearest mode copies the element at that position, rounded
/// down. Linear mode interpolates between the two elements around the position. In a local piece,
/// positions count from the first elements of the piece.
struct Scale {
  std::int64_t step = 1;   ///< at least 1
  std::int64_t start = 0;  ///< may be negative
  std::int64_t unit = 1;   ///< at least 1
  bool linear = false;     ///< linear mode; else nearest mode
  Ends ends = Ends::Clamp;

  /// Whether each output lies at the input of its own number. `ends` may matter nevertheless, if
  /// there are more outputs than inputs.
  constexpr bool is_identity() const { return step == unit && start == 0; }
  static constexpr auto fields() {
    return std::tuple(Field{"step", &Scale::step}, Field{"start", &Scale::start},
                      Field{"unit", &Scale::unit}, Field{"linear", &Scale::linear},
                      Field{"ends", &Scale::ends});
  }
  friend constexpr bool operator==(const Scale&, const Scale&) = default;
  friend constexpr auto operator<=>(const Scale&, const Scale&) = default;
};

/// Returns a / b, rounded down. Requires b > 0.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && a < 0);
}

/// The positions of the two input elements that one output element of a piece reads, and the weight
/// of the second one. `before` equals `after` if only one element is read.
struct Mixture {
  std::int64_t before = 0,
               after = 0;  ///< both may lie beyond an end; inside() then says what is read
  double share = 0;        ///< weight of `after`; the weight of `before` is 1 - share
  friend constexpr bool operator==(const Mixture&, const Mixture&) = default;
};
constexpr Mixture mixture(const Scale& scale, std::int64_t position) {
  const std::int64_t at = scale.step * position + scale.start;
  const std::int64_t before = floor_divide(at, scale.unit), rest = at - before * scale.unit;
  if (!scale.linear) return {before, before, 0};
  return {before, before + (rest > 0), static_cast<double>(rest) / static_cast<double>(scale.unit)};
}

/// Where the centre of an output element lies in the input, as ONNX names the choices. With a ratio
/// of output to input extents, output position p lies at
///   half_pixel            (p + 1/2) / ratio - 1/2
///   pytorch_half_pixel    the same, but at 0 if there is one output position
///   half_pixel_symmetric  the same, moved so that the centres of both tensors coincide
///   tf_half_pixel_for_nn  (p + 1/2) / ratio
///   asymmetric            p / ratio
///   align_corners         p * (inputs - 1) / (outputs - 1), or at 0 if there is one output
enum class Coordinates : std::uint8_t {
  HalfPixel,
  PyTorchHalfPixel,
  HalfPixelSymmetric,
  TfHalfPixelForNn,
  Asymmetric,
  AlignCorners
};
inline constexpr std::array<std::string_view, 6> coordinates_names{
    "half_pixel",           "pytorch_half_pixel", "half_pixel_symmetric",
    "tf_half_pixel_for_nn", "asymmetric",         "align_corners"};

/// How nearest mode rounds a position, as ONNX names the choices. The first two round to the
/// nearest integer, and halves down or up.
enum class Rounding : std::uint8_t { PreferFloor, PreferCeil, Floor, Ceil };
inline constexpr std::array<std::string_view, 4> rounding_names{
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

/// A ratio of output to input extents.
struct Ratio {
  std::int64_t numerator = 1, denominator = 1;
  static constexpr auto fields() {
    return std::tuple(Field{"numerator", &Ratio::numerator},
                      Field{"denominator", &Ratio::denominator});
  }
  friend constexpr bool operator==(const Ratio&, const Ratio&) = default;
  friend constexpr auto operator<=>(const Ratio&, const Ratio&) = default;
};

/// How an upsampling enlarges or reduces an axis.
struct Resizing {
  Ratio ratio{};
  bool linear = false;
  Coordinates coordinates = Coordinates::HalfPixel;
  Rounding rounding = Rounding::PreferFloor;  ///< used in nearest mode
};

/// Returns the map between axes of these extents. Requires numbers from 1 to largest_extent. The
/// numbers of the result have no common factor.
///
/// Worked table: 4 inputs, 6 outputs, so a ratio of 3 / 2.
///   coordinates    position of p    nearest: step, start, unit       linear: step, start, unit
///   half_pixel     (4p - 1) / 6     2, 0, 3 (halves down)            4, -1, 6
///   asymmetric     2p / 3           2, 0, 3 (floor)                  2, 0, 3
///   align_corners  3p / 5           3, 0, 5 (floor)                  3, 0, 5
constexpr Scale scale_of(const Resizing& resizing, std::int64_t inputs, std::int64_t outputs) {
  const auto [more, fewer] = resizing.ratio;
  Scale scale{.step = 2 * fewer,
              .start = fewer - more,
              .unit = 2 * more,
              .linear = resizing.linear};  // half_pixel
  const bool one = outputs == 1;
  switch (resizing.coordinates) {
    case Coordinates::HalfPixel: break;
    case Coordinates::PyTorchHalfPixel:
      if (one) scale = {1, 0, 1, resizing.linear};
      break;
    case Coordinates::HalfPixelSymmetric:
      scale.start = (inputs - 1) * more + (1 - outputs) * fewer;
      break;
    case Coordinates::TfHalfPixelForNn: scale.start = fewer; break;
    case Coordinates::Asymmetric: scale = {fewer, 0, more, resizing.linear}; break;
    case Coordinates::AlignCorners:
      // A step of 0 would stand for a single input, to which every output is clamped anyway.
      scale = one || inputs == 1 ? Scale{1, 0, 1, resizing.linear}
                                 : Scale{inputs - 1, 0, outputs - 1, resizing.linear};
      break;
  }
  std::int64_t common = std::gcd(scale.step, scale.unit);
  if (!scale.linear) {
    // Rounding x is floor(x + share) for some share, because x is a multiple of 1 / unit.
    switch (resizing.rounding) {
      case Rounding::PreferFloor: scale.start += (scale.unit - 1) / 2; break;
      case Rounding::PreferCeil: scale.start += scale.unit / 2; break;
      case Rounding::Floor: break;
      case Rounding::Ceil: scale.start += scale.unit - 1; break;
    }
  } else {
    common = std::gcd(common, scale.start);
  }
  scale = {scale.step / common, floor_divide(scale.start, common), scale.unit / common,
           scale.linear};
  if (scale.unit == 1) scale.linear = false;  // every output lies at the centre of an input
  return scale;
}

/// Returns the map that enlarges an axis by a whole factor.
constexpr Scale enlarged(std::int64_t factor, bool linear = false) {
  return scale_of({.ratio = {factor, 1}, .linear = linear}, 1, factor);
}

}  // namespace stratplan
