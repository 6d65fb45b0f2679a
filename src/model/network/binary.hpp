#pragma once
// The functions of two tensors, y = f(a, b) element by element: a table, one row each. Either may
// have one element along some axes, but not samples, where the other has more: it is read again at
// each place there. So a scale of each channel of a sample, or a map of positions, is applied.
//
// To add a function, write a row, and put its name into SP_BINARY_FUNCTIONS below the rows and into
// the list of kinds of schemas/network.schema.json. Networks, ONNX models, every backend, prices,
// verification and tests go by the row.
//
//   name             in network.json ("subtract"), and in the keys of kernels
//   onnx             ONNX's operator
//   operations       of an element, forward and backward
//   first_reads      which of a and b `first_gradient` is given; what it is not is zero
//   second_reads     the same of `second_gradient`
//   passes_on        optional: first_gradient is dy, and needs no kernel where a is read once
//   value            f(a, b)
//   first_gradient   da, of a, b and dy; where a is read at several places, their sum is taken
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

/// What a row has unless it says otherwise.
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
  return visit(binary::Subtract{});  // there is no other function
}

/// A row's columns; `reads` of both gradients.
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

/// Of input `which`.
template <class Row, int which, class T>
constexpr T gradient(T a, T b, T dy) {
  if constexpr (which == 0)
    return Row::first_gradient(a, b, dy);
  else
    return Row::second_gradient(a, b, dy);
}

}  // namespace binary

}  // namespace stratplan
