#pragma once
// The extents of tensors. Every tensor has the five axes N, C, D, H, W. A 2-D network has D = 1.
// Outputs without spatial positions (fully connected layers, global pooling) have D = H = W = 1.
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
/// Returns 0 for D, 1 for H and 2 for W. Arrays with one entry per spatial axis have these indices.
constexpr int spatial_index(Axis axis) {
  return static_cast<int>(axis) - static_cast<int>(Axis::D);
}
constexpr bool is_spatial(Axis axis) { return axis >= Axis::D; }

/// The extents of a tensor, global or local, in the order N, C, D, H, W. The weights of a
/// convolution have the filters at N and the input channels at C. The weights of a transposed
/// convolution have the input channels at N and the filters at C.
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

/// Element types. Precision in partition/execution.hpp says which type each class of tensors has.
enum class DataType : int { F32, F64, F16, BF16, I32 };
inline constexpr int data_type_count = static_cast<int>(DataType::I32) + 1;
constexpr std::int64_t size_of(DataType type) {
  return std::array<std::int64_t, data_type_count>{4, 8, 2, 2, 4}[static_cast<int>(type)];
}
/// Whether a type is a floating-point type of 16 bits. Kernels convert values of such a type to
/// float and compute in float.
constexpr bool is_narrow(DataType type) { return type == DataType::F16 || type == DataType::BF16; }
constexpr const char* name_of(DataType type) {
  return std::array<const char*, data_type_count>{"f32", "f64", "f16", "bf16",
                                                  "i32"}[static_cast<int>(type)];
}

}  // namespace stratplan
