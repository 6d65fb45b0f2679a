#pragma once
// The table of element-wise functions of two tensors, y = f(a, b), with one row per function. Along
// any axis but N, a or b may have one element where the other tensor has more. That element is then
// read at every position (broadcast). For example, one scale per channel of each sample can
// multiply a whole tensor.
//
// To add a function, write a row. Then add the row's name to SP_BINARY_FUNCTIONS below the rows,
// and `name` to the list of kinds in schemas/network.schema.json. Networks, ONNX models, backends,
// costs, verification and tests read everything else from the row. A row has these columns:
//
//   name             the function's name in network.json ("subtract") and in the keys of kernels
//   onnx             the function's operator in ONNX
//   operations       floating-point operations per element, forward and backward
//   first_reads      which of a and b `first_gradient` reads; the caller passes zero for the other
//   second_reads     which of a and b `second_gradient` reads
//   passes_on        optional: which of a and b has dy as its gradient, and so needs no kernel,
//                    unless it is broadcast
//   value            f(a, b)
//   first_gradient   da at one position, from a, b and dy; if a is broadcast, the caller sums the
//                    results of all positions that read the same element of a
//   second_gradient  db, in the same way
#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"
#include "model/network/shape.hpp"

namespace stratplan {

namespace binary {

/// Some of a and b.
struct Inputs {
  bool first = false, second = false;
};

struct Operations {
  double forward = 1, backward = 1;
};

/// The values of columns that a row does not set.
struct Row {
  static constexpr Operations operations{};
  static constexpr Inputs first_reads{}, second_reads{}, passes_on{};
};

struct Subtract : Row {
  static constexpr std::string_view name = "subtract", onnx = "Sub";
  static constexpr Inputs passes_on{.first = true};
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
  static constexpr Inputs first_reads{.second = true}, second_reads{.first = true};
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

struct Divide : Row {
  static constexpr std::string_view name = "divide", onnx = "Div";
  static constexpr Operations operations{.forward = 4, .backward = 8};
  static constexpr Inputs first_reads{.second = true}, second_reads{.first = true, .second = true};
  template <class T>
  static constexpr T value(T a, T b) {
    return a / b;
  }
  template <class T>
  static constexpr T first_gradient(T, T b, T dy) {
    return dy / b;
  }
  template <class T>
  static constexpr T second_gradient(T a, T b, T dy) {
    return -dy * ((a / b) / b);
  }
};

/// The greater of a and b. Equal elements get half of the gradient each, as in PyTorch.
struct Maximum : Row {
  static constexpr std::string_view name = "maximum", onnx = "Max";
  static constexpr Inputs first_reads{.first = true, .second = true}, second_reads = first_reads;
  template <class T>
  static constexpr T value(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  static constexpr T first_gradient(T a, T b, T dy) {
    return a > b ? dy : a < b ? T(0) : dy / 2;
  }
  template <class T>
  static constexpr T second_gradient(T a, T b, T dy) {
    return first_gradient(b, a, dy);
  }
};

/// The lesser of a and b, with the gradients of Maximum.
struct Minimum : Row {
  static constexpr std::string_view name = "minimum", onnx = "Min";
  static constexpr Inputs first_reads{.first = true, .second = true}, second_reads = first_reads;
  template <class T>
  static constexpr T value(T a, T b) {
    return a < b ? a : b;
  }
  template <class T>
  static constexpr T first_gradient(T a, T b, T dy) {
    return Maximum::first_gradient(b, a, dy);
  }
  template <class T>
  static constexpr T second_gradient(T a, T b, T dy) {
    return Maximum::first_gradient(a, b, dy);
  }
};

/// a + b, where one may be broadcast. Tensors of one shape are added by the kind Add, which takes
/// any number of them.
struct BroadcastAdd : Row {
  static constexpr std::string_view name = "broadcast_add", onnx = "Add";
  static constexpr Inputs passes_on{.first = true, .second = true};
  template <class T>
  static constexpr T value(T a, T b) {
    return a + b;
  }
  template <class T>
  static constexpr T first_gradient(T, T, T dy) {
    return dy;
  }
  template <class T>
  static constexpr T second_gradient(T, T, T dy) {
    return dy;
  }
};

}  // namespace binary

#define SP_BINARY_FUNCTIONS(ROW) \
  ROW(Subtract) ROW(Multiply) ROW(Divide) ROW(Maximum) ROW(Minimum) ROW(BroadcastAdd)

#define SP_BINARY_NAME(Function) Function,
enum class BinaryFunction : std::uint8_t { SP_BINARY_FUNCTIONS(SP_BINARY_NAME) };
#undef SP_BINARY_NAME

#define SP_BINARY_VALUE(Function) BinaryFunction::Function,
inline constexpr std::array all_binary_functions{SP_BINARY_FUNCTIONS(SP_BINARY_VALUE)};
#undef SP_BINARY_VALUE

/// Calls visit(row). `row` is an empty value of the struct that is the row of `function`.
template <class Visit>
constexpr decltype(auto) visit_row(BinaryFunction function, Visit&& visit) {
#define SP_BINARY_CASE(Function) \
  case BinaryFunction::Function: return visit(binary::Function{});
  switch (function) { SP_BINARY_FUNCTIONS(SP_BINARY_CASE) }
#undef SP_BINARY_CASE
  return visit(binary::Subtract{});  // unreachable, because every function has a case
}

/// The columns of a row as values. `reads` holds first_reads and second_reads. `passes_on` tells of
/// each input whether its gradient is dy.
struct BinaryRow {
  std::string_view name, onnx;
  binary::Operations operations;
  std::array<binary::Inputs, 2> reads;
  std::array<bool, 2> passes_on;
};
constexpr BinaryRow row_of(BinaryFunction function) {
  return visit_row(function, []<class Row>(Row) {
    return BinaryRow{Row::name,
                     Row::onnx,
                     Row::operations,
                     {Row::first_reads, Row::second_reads},
                     {Row::passes_on.first, Row::passes_on.second}};
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
