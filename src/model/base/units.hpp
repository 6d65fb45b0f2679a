#pragma once
// Quantities with their unit in the type. JSON keys also carry the unit (`step_seconds`,
// `memory_bytes`). Numbers are converted once, where they enter or leave the program.
#include <compare>
#include <cstdint>

namespace stratplan {

/// A number of one unit. Only operations that make physical sense compile: sums and differences of
/// one unit, scaling by a plain number, and the ratio of two quantities of one unit (a plain
/// number).
template <class Unit, class Number>
struct Quantity {
  Number value{};

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, Number factor) { return {a.value * factor}; }
  friend constexpr Quantity operator*(Number factor, Quantity a) { return {a.value * factor}; }
  friend constexpr Quantity operator/(Quantity a, Number divisor) { return {a.value / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
};

using Seconds = Quantity<struct SecondsUnit, double>;
using Bytes = Quantity<struct BytesUnit, std::int64_t>;
/// Floating-point operations; a multiply-add counts as two.
using Flops = Quantity<struct FlopsUnit, double>;

}  // namespace stratplan
