#pragma once
// The table of pointwise functions, y = f(x) for each element, with one row per function.
//
// To add a function, write a row beside a similar one. Then add
//   - the struct's name to SP_POINTWISE_FUNCTIONS below the rows
//   - `name` to the list of kinds in schemas/network.schema.json, and new names of constants to the
//     properties there
//   - published values to tests/runtime/pointwise_test.cpp
//   - PyTorch's name of the function to tests/torch/judge.py, and ONNX's operator to
//     tests/onnx/translate.py
//   - the name to docs/networks.md, and the operator to docs/onnx.md
// Then record the golden files anew (scripts/golden.sh make). Networks, ONNX models, backends,
// costs, fusion and verification read everything else from the row. A row has these columns:
//
//   name         the name in network.json ("relu") and in the keys of kernels
//                ("relu_forward e1024")
//   onnx         the function's operator in ONNX; empty if the import has to do more than read the
//                operator's constants
//   onnx_mode    optional: an attribute of the operator and the attribute's value that selects this
//                function, if one operator stands for several rows
//   constants    at most two numbers that a layer may set: their names in network.json and in
//                ONNX, their usual values, their least allowed values
//   reads        the argument of `gradient`: the function's Input x or its Output y. Output saves
//                memory if nothing else keeps x. Input is needed if y does not determine the
//                derivative, for example because y is rounded to a limit
//   operations   floating-point operations per element, forward and backward, for lower bounds of
//                a kernel's time. An addition, product or comparison counts as 1, a division or
//                root as 4, any other function of Math as 20. Only the order of magnitude matters
//   jumps        optional: the values of the argument of `gradient` at which the first derivative
//                jumps; a function with one jump sets `low`. Runs that round differently may
//                compute different derivatives there (runtime/verify/verify.hpp)
//   fused_slope  optional: the slope >= 0 of a function that is x where x > 0, and slope * x
//                elsewhere. The kernel of the layer before can apply such a function to its own
//                output (partition/layers/fusion.hpp)
//   domain       optional: the least x for which f has a value
//   value        f(x)
//   gradient     dx, from dy and from Input or Output
//
// The template parameter Math has the functions exp, expm1, log1p, tanh, erf and sqrt of T. Each
// backend has its own Math (runtime/reference/pointwise.cpp). For |x| write x < 0 ? -x : x. T is
// double in the reference backend and float elsewhere. Constants have type T. In a row with
// `stored_constants`, they are rounded to the type in which tensors are stored.
#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include "model/base/json/fields.hpp"

namespace stratplan {

namespace pointwise {

enum class Reads : std::uint8_t { Input, Output };

struct ConstantName {
  std::string_view name, onnx;
  double usual = 0, least = -std::numeric_limits<double>::infinity();
};

/// The values of a row's constants, in the row's order. Entries beyond the last constant are 0.
template <class T>
using Constants = std::array<T, 2>;

/// An attribute of an ONNX operator, its value in models that omit it, and the value that selects
/// the row's function.
struct OnnxMode {
  std::string_view attribute, usual, value;
};

struct Jumps {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct Operations {
  double forward = 1, backward = 1;
};

/// The values of columns that a row does not set.
struct Row {
  static constexpr std::string_view onnx{};
  static constexpr OnnxMode onnx_mode{};
  static constexpr std::array<ConstantName, 0> constants{};
  static constexpr bool stored_constants = false;
  static constexpr Operations operations{};
  static constexpr Jumps jumps(const Constants<double>&) { return {}; }
  static constexpr std::optional<double> fused_slope(const Constants<double>&) { return {}; }
  static constexpr double domain = -std::numeric_limits<double>::infinity();
};

struct Relu : Row {
  static constexpr std::string_view name = "relu", onnx = "Relu";
  static constexpr Reads reads = Reads::Output;
  static constexpr Jumps jumps(const Constants<double>&) { return {.low = 0}; }
  static constexpr std::optional<double> fused_slope(const Constants<double>&) { return 0; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x > 0 ? x : T(0);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return y > 0 ? dy : T(0);
  }
};

struct LeakyRelu : Row {
  static constexpr std::string_view name = "leaky_relu", onnx = "LeakyRelu";
  static constexpr std::array constants{ConstantName{"slope", "alpha", 0.01, 0}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Jumps jumps(const Constants<double>&) { return {.low = 0}; }
  static constexpr std::optional<double> fused_slope(const Constants<double>& c) { return c[0]; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return x > 0 ? x : x * c[0];
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    return y > 0 ? dy : dy * c[0];
  }
};

struct Sigmoid : Row {
  static constexpr std::string_view name = "sigmoid", onnx = "Sigmoid";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{20, 1};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return 1 / (1 + Math::exp(-x));
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return dy * y * (1 - y);
  }
};

struct Tanh : Row {
  static constexpr std::string_view name = "tanh", onnx = "Tanh";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{20, 3};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return Math::tanh(x);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return dy * (1 - y * y);
  }
};

struct Elu : Row {
  static constexpr std::string_view name = "elu", onnx = "Elu";
  static constexpr std::array constants{ConstantName{"alpha", "alpha", 1, 0}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{20, 1};
  static constexpr Jumps jumps(const Constants<double>&) { return {.low = 0}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return x > 0 ? x : c[0] * Math::expm1(x > 0 ? T(0) : x);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    return y > 0 ? dy : dy * (y + c[0]);
  }
};

/// NaN stays NaN. The gradient is zero where the output equals a limit. The comparison with a limit
/// is exact, because the limits are rounded to the type in which outputs are stored.
struct Clip : Row {
  static constexpr std::string_view name = "clip";  // no `onnx`, because ONNX's limits are inputs
  static constexpr std::array constants{
      ConstantName{"min", "", std::numeric_limits<float>::lowest()},
      ConstantName{"max", "", std::numeric_limits<float>::max()}};
  static constexpr bool stored_constants = true;
  static constexpr Reads reads = Reads::Output;
  static constexpr Jumps jumps(const Constants<double>& c) { return {c[0], c[1]}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    const T above = x < c[0] ? c[0] : x;
    return c[1] < above ? c[1] : above;
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    const T below = y < c[1] ? dy : T(0);
    return y > c[0] ? below : T(0);
  }
};

/// A straight line. It stands for arithmetic with constants, which no training changes.
struct Linear : Row {
  static constexpr std::string_view name = "linear";  // no `onnx`, because constants are inputs
  static constexpr std::array constants{ConstantName{"factor", "", 1}, ConstantName{"summand", ""}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{2, 1};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return c[0] * x + c[1];
  }
  template <class Math, class T>
  static constexpr T gradient(T, T dy, const Constants<T>& c) {
    return c[0] * dy;
  }
};

struct Silu : Row {
  static constexpr std::string_view name = "silu";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{22, 25};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x / (1 + Math::exp(-x));
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T sigmoid = 1 / (1 + Math::exp(-x));
    return dy * sigmoid * (1 + x * (1 - sigmoid));
  }
};

struct HardSwish : Row {
  static constexpr std::string_view name = "hard_swish", onnx = "HardSwish";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{5, 5};
  static constexpr Jumps jumps(const Constants<double>&) { return {-3, 3}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    const T gate = x / 6 + T(0.5), above = gate < 0 ? T(0) : gate;
    return x * (above > 1 ? T(1) : above);
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T between = dy * (x / 3 + T(0.5));
    return x > -3 ? (x < 3 ? between : dy) : T(0);
  }
};

struct HardSigmoid : Row {
  static constexpr std::string_view name = "hard_sigmoid", onnx = "HardSigmoid";
  static constexpr std::array constants{ConstantName{"alpha", "alpha", 0.2, 0},
                                        ConstantName{"beta", "beta", 0.5, 0}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{4, 3};
  static constexpr Jumps jumps(const Constants<double>&) { return {0, 1}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    const T line = c[0] * x + c[1], above = line < 0 ? T(0) : line;
    return above > 1 ? T(1) : above;
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    const T below = y < 1 ? c[0] * dy : T(0);
    return y > 0 ? below : T(0);
  }
};

struct Softplus : Row {
  static constexpr std::string_view name = "softplus", onnx = "Softplus";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{42, 22};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return (x > 0 ? x : T(0)) + Math::log1p(Math::exp(x > 0 ? -x : x));
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return -dy * Math::expm1(-y);
  }
};

struct Mish : Row {
  static constexpr std::string_view name = "mish", onnx = "Mish";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{63, 90};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x * Math::tanh(Softplus::value<Math>(x, Constants<T>{}));
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T tanh = Math::tanh(Softplus::value<Math>(x, Constants<T>{}));
    return dy * (tanh + x * (1 - tanh * tanh) / (1 + Math::exp(-x)));
  }
};

struct Selu : Row {
  static constexpr std::string_view name = "selu", onnx = "Selu";
  static constexpr std::array constants{
      ConstantName{"alpha", "alpha", 1.67326319217681884765625, 0},
      ConstantName{"gamma", "gamma", 1.05070102214813232421875, 0}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{22, 3};
  static constexpr Jumps jumps(const Constants<double>&) { return {.low = 0}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return c[1] * (x > 0 ? x : c[0] * Math::expm1(x > 0 ? T(0) : x));
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    return dy * (y > 0 ? c[1] : y + c[0] * c[1]);
  }
};

struct Celu : Row {
  static constexpr std::string_view name = "celu", onnx = "Celu";
  static constexpr std::array constants{
      ConstantName{"alpha", "alpha", 1, std::numeric_limits<float>::min()}};
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{23, 3};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return x > 0 ? x : c[0] * Math::expm1((x > 0 ? T(0) : x) / c[0]);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>& c) {
    return y > 0 ? dy : dy * (y / c[0] + 1);
  }
};

struct Abs : Row {
  static constexpr std::string_view name = "abs", onnx = "Abs";
  static constexpr Reads reads = Reads::Input;
  static constexpr Jumps jumps(const Constants<double>&) { return {.low = 0}; }
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x < 0 ? -x : x;
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T below = x < 0 ? -dy : T(0);
    return x > 0 ? dy : below;
  }
};

struct Exp : Row {
  static constexpr std::string_view name = "exp", onnx = "Exp";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{20, 1};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return Math::exp(x);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return dy * y;
  }
};

/// The gradient at 0 is 0, as that of PyTorch's norm, which ONNX writes as the root of a sum of
/// squares. A slope of infinity there, times the sum's slope of 0, is no number.
struct Sqrt : Row {
  static constexpr std::string_view name = "sqrt", onnx = "Sqrt";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{4, 4};
  static constexpr double domain = 0;
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return Math::sqrt(x);
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return y > T(0) ? dy / (2 * y) : T(0);
  }
};

struct Square : Row {
  static constexpr std::string_view name = "square";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{1, 2};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x * x;
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    return 2 * x * dy;
  }
};

struct Gelu : Row {
  static constexpr std::string_view name = "gelu", onnx = "Gelu";
  static constexpr OnnxMode onnx_mode{"approximate", "none", "none"};
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{24, 47};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x / 2 * (1 + Math::erf(x * T(0.70710678118654752)));  // 1 / sqrt(2)
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T density = Math::exp(-x * x / 2) * T(0.39894228040143268);  // 1 / sqrt(2 pi)
    return dy * ((1 + Math::erf(x * T(0.70710678118654752))) / 2 + x * density);
  }
};

/// Gelu in the tanh approximation of Hendrycks and Gimpel (arXiv 1606.08415, section 2).
struct GeluTanh : Row {
  static constexpr std::string_view name = "gelu_tanh", onnx = "Gelu";
  static constexpr OnnxMode onnx_mode{"approximate", "none", "tanh"};
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{28, 36};
  static constexpr double factor = 0.79788456080286536, cubic = 0.044715;  // factor is sqrt(2 / pi)
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return x / 2 * (1 + Math::tanh(T(factor) * (x + T(cubic) * x * x * x)));
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    const T tanh = Math::tanh(T(factor) * (x + T(cubic) * x * x * x)),
            slope = T(factor) * (1 + 3 * T(cubic) * x * x);
    return dy / 2 * (1 + tanh + x * (1 - tanh * tanh) * slope);
  }
};

struct Erf : Row {
  static constexpr std::string_view name = "erf", onnx = "Erf";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{20, 22};
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return Math::erf(x);
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    return dy * Math::exp(-x * x) * T(1.1283791670955126);  // 2 / sqrt(pi)
  }
};

/// The natural logarithm.
struct Log : Row {
  static constexpr std::string_view name = "log", onnx = "Log";
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{20, 4};
  static constexpr double domain = 0.005;
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return Math::log(x);
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>&) {
    return dy / x;
  }
};

struct Reciprocal : Row {
  static constexpr std::string_view name = "reciprocal", onnx = "Reciprocal";
  static constexpr Reads reads = Reads::Output;
  static constexpr Operations operations{4, 3};
  static constexpr double domain = 0.005;
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>&) {
    return 1 / x;
  }
  template <class Math, class T>
  static constexpr T gradient(T y, T dy, const Constants<T>&) {
    return -dy * y * y;
  }
};

/// x^p of x above 0, for any exponent p.
struct Power : Row {
  static constexpr std::string_view name = "power";
  static constexpr std::array constants{
      ConstantName{"exponent", "", 0.5, -std::numeric_limits<double>::infinity()}};
  static constexpr Reads reads = Reads::Input;
  static constexpr Operations operations{40, 42};
  static constexpr double domain = 0.005;
  template <class Math, class T>
  static constexpr T value(T x, const Constants<T>& c) {
    return Math::exp(c[0] * Math::log(x));
  }
  template <class Math, class T>
  static constexpr T gradient(T x, T dy, const Constants<T>& c) {
    return dy * c[0] * Math::exp((c[0] - 1) * Math::log(x));
  }
};

}  // namespace pointwise

// clang-format off
#define SP_POINTWISE_FUNCTIONS(ROW)                                                         \
  ROW(Relu) ROW(LeakyRelu) ROW(Sigmoid) ROW(Tanh) ROW(Elu) ROW(Clip) ROW(Silu)              \
  ROW(HardSwish) ROW(HardSigmoid) ROW(Softplus) ROW(Mish) ROW(Selu) ROW(Celu) ROW(Abs)      \
  ROW(Exp) ROW(Sqrt) ROW(Square) ROW(Gelu) ROW(GeluTanh) ROW(Linear) ROW(Erf)  \
  ROW(Log) ROW(Reciprocal) ROW(Power)
// clang-format on

#define SP_POINTWISE_ENUMERATOR(Function) Function,
enum class PointwiseFunction : std::uint8_t { SP_POINTWISE_FUNCTIONS(SP_POINTWISE_ENUMERATOR) };
#undef SP_POINTWISE_ENUMERATOR

#define SP_POINTWISE_VALUE(Function) PointwiseFunction::Function,
inline constexpr std::array all_pointwise_functions{SP_POINTWISE_FUNCTIONS(SP_POINTWISE_VALUE)};
#undef SP_POINTWISE_VALUE

/// Calls visit(row). `row` is an empty value of the struct that is the row of `function`.
template <class Visit>
constexpr decltype(auto) visit_row(PointwiseFunction function, Visit&& visit) {
#define SP_POINTWISE_CASE(Function) \
  case PointwiseFunction::Function: return visit(pointwise::Function{});
  switch (function) { SP_POINTWISE_FUNCTIONS(SP_POINTWISE_CASE) }
#undef SP_POINTWISE_CASE
  return visit(pointwise::Relu{});  // unreachable, because every function has a case
}

/// The columns of a row as values, except those that depend on constants.
struct PointwiseRow {
  std::string_view name, onnx;
  pointwise::OnnxMode onnx_mode;
  std::span<const pointwise::ConstantName> constants;
  bool stored_constants;
  pointwise::Reads reads;
  pointwise::Operations operations;
  double domain;
};
constexpr PointwiseRow row_of(PointwiseFunction function) {
  return visit_row(function, []<class Row>(Row) {
    return PointwiseRow{
        Row::name,  Row::onnx,       Row::onnx_mode, Row::constants, Row::stored_constants,
        Row::reads, Row::operations, Row::domain};
  });
}
constexpr std::string_view name_of(PointwiseFunction function) { return row_of(function).name; }
constexpr bool reads_input(PointwiseFunction function) {
  return row_of(function).reads == pointwise::Reads::Input;
}
/// The constants of a layer that sets none.
constexpr pointwise::Constants<double> usual_constants(PointwiseFunction function) {
  pointwise::Constants<double> values{};
  std::size_t i = 0;
  for (const pointwise::ConstantName& constant : row_of(function).constants)
    values[i++] = constant.usual;
  return values;
}

/// A pointwise function with its constants.
struct Activation {
  PointwiseFunction function = PointwiseFunction::Relu;
  pointwise::Constants<double> constants{};

  constexpr pointwise::Jumps jumps() const {
    return visit_row(function, [&]<class Row>(Row) { return Row::jumps(constants); });
  }
  /// Returns the row's fused_slope. Returns nothing if the kernel of the layer before cannot apply
  /// the function.
  constexpr std::optional<double> fused_slope() const {
    return visit_row(function, [&]<class Row>(Row) { return Row::fused_slope(constants); });
  }
  static constexpr auto fields() {
    return std::tuple(Field{"function", &Activation::function},
                      Field{"constants", &Activation::constants});
  }
  friend auto operator<=>(const Activation&, const Activation&) = default;
};

}  // namespace stratplan
