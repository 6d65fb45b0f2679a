#pragma once
// Reductions: the mean, the sum or the greatest element along some axes of a sample.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "model/network/shape.hpp"

namespace stratplan {

/// Max takes the greatest element. Equal elements share the gradient equally.
enum class Reduction : std::uint8_t { Mean, Sum, Max };
inline constexpr std::array<std::string_view, 3> reduction_names{"mean", "sum", "max"};

constexpr std::string_view name_of(Reduction function) {
  return reduction_names[static_cast<std::size_t>(function)];
}

/// The axes that are reduced to one element, by Axis. N is never among them.
using ReducedAxes = std::array<bool, axis_count>;

/// Returns the number of input elements of shape `input` behind one element of the output.
constexpr std::int64_t terms_of(const ReducedAxes& axes, const Shape& input) {
  std::int64_t terms = 1;
  for (const Axis axis : all_axes)
    if (axes[static_cast<std::size_t>(axis)]) terms *= input[axis];
  return terms;
}

}  // namespace stratplan
