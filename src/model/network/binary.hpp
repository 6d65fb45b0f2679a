#pragma once
// The functions of two tensors, y = f(a, b) element by element: a table with one row per function.
// Along any axis but samples, a or b may have one element where the other has more. That element
// is then read at every position (broadcast). For example, a scale per channel of each sample, or a
// map of positions, multiplies a whole tensor.
//
// To add a function, write a row. Then add the row's name to SP_BINARY_FUNCTIONS below the rows,
// and `name` to the list of kinds in schemas/network.schema.json. Networks, ONNX models, backends,
// costs, verification and tests read everything else from the row. Its columns:
//
//   name             in network.json ("subtract"), and in the keys of kernels
//   onnx             ONNX's operator
//   operations       floating-point operations per element, forward and backward
//   first_reads      which of a and b `first_gradient` needs; it gets zero for the other
//   second_reads     the same for `second_gradient`
//   passes_on        optional: first_gradient is dy, so no kernel is needed unless a is broadcast
//   value            f(a, b)
//   first_gradient   da, from a, b and dy; if a is broadcast, the caller sums over its positions
//   second_gradient  db, likewise
#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"
#include "model/network/shape.hpp"

namespace stratplan {

namespace binary {

struct Reads {
  bool first = false, second = false;
};

struct Operations {
  double forward = 1, backward = 1;
};

/// Defaults of a row.
struct Row {
  static constexpr Operations operations{};
  static constexpr Reads first_reads{}, second_reads{};
  static constexpr bool passes_on = false;
};

struct Subtract : Row {
  static constexpr std::string_view name = "subtract", onnx = "Sub";
  static constexpr bool passes_on = true;
  template <class T>
  static constexpr T value(T a, T b) {
    return a - b;
  }
  template <class T>
  static constexpr T first_gradient(T, T, T dy) {
    return dy;
  }
  template <class T>
  static constexpr T second_gradient(T, T, T dy) {
    return -dy;
  }
};

struct Multiply : Row {
  static constexpr std::string_view name = "multiply", onnx = "Mul";
  static constexpr Reads first_reads{.second = true}, second_reads{.first = true};
  template <class T>
  static constexpr T value(T a, T b) {
    return a * b;
  }
  template <class T>
  static constexpr T first_gradient(T, T b, T dy) {
    return dy * b;
  }
  template <class T>
  static constexpr T second_gradient(T a, T, T dy) {
    return dy * a;
  }
};

}  // namespace binary

#define SP_BINARY_FUNCTIONS(ROW) ROW(Subtract) ROW(Multiply)

#define SP_BINARY_NAME(Function) Function,
enum class BinaryFunction : std::uint8_t { SP_BINARY_FUNCTIONS(SP_BINARY_NAME) };
#undef SP_BINARY_NAME

#define SP_BINARY_VALUE(Function) BinaryFunction::Function,
inline constexpr std::array all_binary_functions{SP_BINARY_FUNCTIONS(SP_BINARY_VALUE)};
#undef SP_BINARY_VALUE

/// Calls visit(row) with the row of `function`, an empty value of its type.
template <class Visit>
constexpr decltype(auto) visit_row(BinaryFunction function, Visit&& visit) {
#define SP_BINARY_CASE(Function) \
  case BinaryFunction::Function: return visit(binary::Function{});
  switch (function) { SP_BINARY_FUNCTIONS(SP_BINARY_CASE) }
#undef SP_BINARY_CASE
  return visit(binary::Subtract{});  // not reached: every function has a case
}

/// The columns of a row as values; `reads`: by gradient.
struct BinaryRow {
  std::string_view name, onnx;
  binary::Operations operations;
  std::array<binary::Reads, 2> reads;
  bool passes_on;
};
constexpr BinaryRow row_of(BinaryFunction function) {
  return visit_row(function, []<class Row>(Row) {
    return BinaryRow{Row::name,
                     Row::onnx,
                     Row::operations,
                     {Row::first_reads, Row::second_reads},
                     Row::passes_on};
  });
}
constexpr std::string_view name_of(BinaryFunction function) { return row_of(function).name; }

namespace binary {

/// The gradient of input `which` (0: a, 1: b).
template <class Row, int which, class T>
constexpr T gradient(T a, T b, T dy) {
  if constexpr (which == 0)
    return Row::first_gradient(a, b, dy);
  else
    return Row::second_gradient(a, b, dy);
}

}  // namespace binary

}  // namespace stratplan
