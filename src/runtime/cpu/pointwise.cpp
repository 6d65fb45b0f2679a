// Pointwise functions. Each row of network/functions/pointwise.hpp has one loop for values and one
// for gradients. An output may be one of the inputs, element for element, so loops are marked ivdep
// and pointers are not restrict.
#include <cmath>

#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vector_math.hpp"
#include "runtime/device/stored_constants.hpp"

namespace stratplan::cpu {
namespace {

using Constants = pointwise::Constants<float>;

struct Math {
  static float exp(float x) { return exponential(x); }
  static float expm1(float x) { return exponential_less_one(x); }
  static float log1p(float x) { return logarithm_of_one_more(x); }
  static float log(float x) { return logarithm(x); }
  static float tanh(float x) { return hyperbolic_tangent(x); }
  static float erf(float x) { return error_function(x); }
  static float sqrt(float x) { return std::sqrt(x); }
};

// Each loop is a function of its own, because only functions can be compiled for several
// instruction sets. The functions are flattened, because calls would prevent vectorization.
#define SP_ROW_LOOPS(Row)                                                                          \
  [[gnu::flatten]] SP_CLONES void value_of_##Row(const float* x, float* y, Constants constants,    \
                                                 std::int64_t count) {                             \
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i) y[i] =                           \
        pointwise::Row::value<Math>(x[i], constants);                                              \
  }                                                                                                \
  [[gnu::flatten]] SP_CLONES void gradient_of_##Row(const float* read, const float* dy, float* dx, \
                                                    Constants constants, std::int64_t count) {     \
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i) dx[i] =                          \
        pointwise::Row::gradient<Math>(read[i], dy[i], constants);                                 \
  }
SP_POINTWISE_FUNCTIONS(SP_ROW_LOOPS)
#undef SP_ROW_LOOPS

struct Loops {
  void (*value)(const float*, float*, Constants, std::int64_t);
  void (*gradient)(const float*, const float*, float*, Constants, std::int64_t);
};
#define SP_ROW_ENTRY(Row) Loops{value_of_##Row, gradient_of_##Row},
constexpr std::array loops{SP_POINTWISE_FUNCTIONS(SP_ROW_ENTRY)};
#undef SP_ROW_ENTRY

const Loops& loops_of(const Kernel& kernel) {
  return loops[static_cast<std::size_t>(kernel.as<Activation>().function)];
}

Constants constants_of(const Kernel& kernel) {
  const auto [first, second] = stored_constants(kernel.as<Activation>(), kernel.type);
  return {static_cast<float>(first), static_cast<float>(second)};
}

}  // namespace

void pointwise_forward(const Kernel& kernel, const KernelCall& call) {
  const Constants constants = constants_of(kernel);
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    loops_of(kernel).value(call.read(0) + begin, call.write(0) + begin, constants, end - begin);
  });
}

void pointwise_backward(const Kernel& kernel, const KernelCall& call) {
  const Constants constants = constants_of(kernel);
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    loops_of(kernel).gradient(call.read(0) + begin, call.read(1) + begin, call.write(0) + begin,
                              constants, end - begin);
  });
}

}  // namespace stratplan::cpu
