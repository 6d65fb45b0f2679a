#pragma once
// Extents of activation tensors. Every tensor has the five axes N, C, D, H, W. A 2-D network has
// D = 1. Outputs without spatial positions (fully connected layers, global pooling) have
// D = H = W = 1.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <tuple>

#include "model/base/json/fields.hpp"
#include "model/base/units.hpp"

namespace stratplan {

enum class Axis : int { N, C, D, H, W };
inline constexpr int axis_count = 5;
inline constexpr std::array<Axis, axis_count> all_axes{Axis::N, Axis::C, Axis::D, Axis::H, Axis::W};
inline constexpr std::array<Axis, 3> spatial_axes{Axis::D, Axis::H, Axis::W};
inline constexpr std::array<const char*, axis_count> axis_names{"N", "C", "D", "H", "W"};
/// Returns the position of a spatial axis among D, H, W: the index into arrays of windows.
constexpr int spatial_index(Axis axis) {
  return static_cast<int>(axis) - static_cast<int>(Axis::D);
}
constexpr bool is_spatial(Axis axis) { return axis >= Axis::D; }

/// Global or local extents (N, C, D, H, W). For convolution weights N stands for the filters F and
/// C for the input channels.
struct Shape {
  std::array<std::int64_t, axis_count> extent{1, 1, 1, 1, 1};

  constexpr std::int64_t& operator[](Axis axis) { return extent[static_cast<int>(axis)]; }
  constexpr std::int64_t operator[](Axis axis) const { return extent[static_cast<int>(axis)]; }
  constexpr std::int64_t elements() const {
    return extent[0] * extent[1] * extent[2] * extent[3] * extent[4];
  }
  static constexpr auto fields() { return std::tuple(Field{"extent", &Shape::extent}); }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
  friend constexpr auto operator<=>(const Shape&, const Shape&) = default;
};

/// Element types. A program's tensors have one type per tensor class (Precision in
/// partition/execution.hpp).
enum class DataType : int { F32, F64, F16, BF16, I32 };
inline constexpr int data_type_count = static_cast<int>(DataType::I32) + 1;
constexpr std::int64_t size_of(DataType type) {
  return std::array<std::int64_t, data_type_count>{4, 8, 2, 2, 4}[static_cast<int>(type)];
}
/// Whether a type is a floating type of 16 bits. Kernels convert its values to float to compute.
constexpr bool is_narrow(DataType type) { return type == DataType::F16 || type == DataType::BF16; }
constexpr const char* name_of(DataType type) {
  return std::array<const char*, data_type_count>{"f32", "f64", "f16", "bf16",
                                                  "i32"}[static_cast<int>(type)];
}

}  // namespace stratplan
