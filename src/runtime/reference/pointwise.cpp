#include <cmath>

#include "runtime/device/stored_constants.hpp"
#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

struct Math {
  static double exp(double x) { return std::exp(x); }
  static double expm1(double x) { return std::expm1(x); }
  static double log1p(double x) { return std::log1p(x); }
  static double log(double x) { return std::log(x); }
  static double tanh(double x) { return std::tanh(x); }
  static double erf(double x) { return std::erf(x); }
  static double sqrt(double x) { return std::sqrt(x); }
};

}  // namespace

void pointwise_forward(const Kernel& kernel, const KernelCall& call) {
  const auto constants = stored_constants(kernel.as<Activation>(), kernel.type);
  visit_row(kernel.as<Activation>().function, [&]<class Row>(Row) {
    for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
      call.write(0)[i] =
          static_cast<float>(Row::template value<Math>(double{call.read(0)[i]}, constants));
  });
}

void pointwise_backward(const Kernel& kernel, const KernelCall& call) {
  const auto constants = stored_constants(kernel.as<Activation>(), kernel.type);
  visit_row(kernel.as<Activation>().function, [&]<class Row>(Row) {
    for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
      call.write(0)[i] = static_cast<float>(Row::template gradient<Math>(
          double{call.read(0)[i]}, double{call.read(1)[i]}, constants));
  });
}

}  // namespace stratplan::reference
