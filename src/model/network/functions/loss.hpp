#pragma once
// The table of losses that compare each element of the network's output x with a target t, and take
// the mean over all elements. One row per loss.
//
// To add a loss, write a row. Then add
//   - the struct's name to SP_LOSS_FUNCTIONS below the rows
//   - `name` to the list of kinds in schemas/network.schema.json, and a new name of a constant to
//     the properties there
//   - values by hand to tests/runtime/reference_losses_test.cpp
//   - PyTorch's name of the loss to tests/torch/judge.py and pytorch_network.py
//   - the name to docs/networks.md, and a word for --loss to model/network/loss_choice.hpp
// Networks, backends, costs and verification read everything else from the row. A row has these
// columns:
//
//   name        the name in network.json ("mean_squared_error") and in the keys of kernels
//   constant    optional: the name in network.json of a positive number that a layer may set. Its
//               usual value is 1
//   operations  floating-point operations per element, counted as in pointwise.hpp
//   jumps       optional: whether the derivative jumps where x is t. Runs that round differently
//               may compute different derivatives there (runtime/verify/decisions.hpp)
//   value       the loss of one element
//   gradient    the derivative of `value` by x
//
// The template parameter Math has the functions exp and log1p of T. For |x| write x < 0 ? -x : x.
#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

namespace losses {

/// The values of columns that a row does not set.
struct Row {
  static constexpr std::string_view constant{};
  static constexpr bool jumps = false;
};

struct MeanSquaredError : Row {
  static constexpr std::string_view name = "mean_squared_error";
  static constexpr double operations = 4;
  template <class Math, class T>
  static constexpr T value(T x, T t, T) {
    return (x - t) * (x - t);
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T t, T) {
    return 2 * (x - t);
  }
};

struct MeanAbsoluteError : Row {
  static constexpr std::string_view name = "mean_absolute_error";
  static constexpr double operations = 4;
  static constexpr bool jumps = true;
  template <class Math, class T>
  static constexpr T value(T x, T t, T) {
    return x < t ? t - x : x - t;
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T t, T) {
    return T(t < x) - T(x < t);
  }
};

/// Half of the square up to a distance of delta, and a straight line from there (Huber 1964).
struct Huber : Row {
  static constexpr std::string_view name = "huber_loss", constant = "delta";
  static constexpr double operations = 8;
  template <class Math, class T>
  static constexpr T value(T x, T t, T delta) {
    const T distance = x < t ? t - x : x - t;
    return distance < delta ? distance * distance / 2 : delta * (distance - delta / 2);
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T t, T delta) {
    return x - t < -delta ? -delta : x - t > delta ? delta : x - t;
  }
};

/// Huber's loss divided by its delta, which is named beta here (Girshick, arXiv 1504.08083).
struct SmoothL1 : Row {
  static constexpr std::string_view name = "smooth_l1_loss", constant = "beta";
  static constexpr double operations = 12;
  template <class Math, class T>
  static constexpr T value(T x, T t, T beta) {
    const T distance = x < t ? t - x : x - t;
    return distance < beta ? distance * distance / 2 / beta : distance - beta / 2;
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T t, T beta) {
    return x - t < -beta ? T(-1) : x - t > beta ? T(1) : (x - t) / beta;
  }
};

/// The binary cross-entropy of the sigmoid of x and a probability t. The terms of t, which is 1 for
/// an element that belongs to its class, are multiplied by the constant.
struct SigmoidCrossEntropy : Row {
  static constexpr std::string_view name = "sigmoid_cross_entropy", constant = "positive_weight";
  static constexpr double operations = 55;
  template <class Math, class T>
  static constexpr T value(T x, T t, T weight) {
    // log(1 + exp(-x)), without an overflow
    const T softplus = Math::log1p(Math::exp(x < 0 ? x : -x)) + (x < 0 ? -x : T(0));
    return (1 - t) * x + (1 + (weight - 1) * t) * softplus;
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T t, T weight) {
    const T small = Math::exp(x < 0 ? x : -x), sigmoid = (x < 0 ? small : T(1)) / (1 + small);
    return (1 + (weight - 1) * t) * sigmoid - weight * t;
  }
};

}  // namespace losses

#define SP_LOSS_FUNCTIONS(ROW) \
  ROW(MeanSquaredError) ROW(MeanAbsoluteError) ROW(Huber) ROW(SmoothL1) ROW(SigmoidCrossEntropy)

#define SP_LOSS_NAME(Function) Function,
enum class LossFunction : std::uint8_t { SP_LOSS_FUNCTIONS(SP_LOSS_NAME) };
#undef SP_LOSS_NAME

#define SP_LOSS_VALUE(Function) LossFunction::Function,
inline constexpr std::array all_loss_functions{SP_LOSS_FUNCTIONS(SP_LOSS_VALUE)};
#undef SP_LOSS_VALUE

/// Calls visit(row). `row` is an empty value of the struct that is the row of `function`.
template <class Visit>
constexpr decltype(auto) visit_row(LossFunction function, Visit&& visit) {
#define SP_LOSS_CASE(Function) \
  case LossFunction::Function: return visit(losses::Function{});
  switch (function) { SP_LOSS_FUNCTIONS(SP_LOSS_CASE) }
#undef SP_LOSS_CASE
  return visit(losses::MeanSquaredError{});  // unreachable, because every function has a case
}

/// The columns of a row as values.
struct LossRow {
  std::string_view name, constant;
  double operations;
  bool jumps;
};
constexpr LossRow row_of(LossFunction function) {
  return visit_row(function, []<class Row>(Row) {
    return LossRow{Row::name, Row::constant, Row::operations, Row::jumps};
  });
}
constexpr std::string_view name_of(LossFunction function) { return row_of(function).name; }

/// A loss with its constant.
struct ElementLoss {
  LossFunction function = LossFunction::MeanSquaredError;
  double constant = 1;

  static constexpr auto fields() {
    return std::tuple(Field{"function", &ElementLoss::function},
                      Field{"constant", &ElementLoss::constant});
  }
  friend auto operator<=>(const ElementLoss&, const ElementLoss&) = default;
};

}  // namespace stratplan
