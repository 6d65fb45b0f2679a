#pragma once
// Gradients by central differences, which judge the reference kernels' backward passes.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/kernel_runner.hpp"

namespace stratplan::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Returns a kernel whose x and y have one shape.
inline Kernel point_wise(KernelKind kind, Shape shape, const KernelAttributes& attributes) {
  return {.kind = kind, .x = shape, .y = shape, .attributes = attributes};
}
inline Kernel point_wise(KernelKind kind, Shape shape) {
  return point_wise(kind, shape, attributes_of(kind));
}

/// d loss / d values[i] by central differences, for a loss that is a function of one float tensor.
template <class Loss>
Doubles differences(Floats values, float h, Loss loss) {
  Doubles result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    values[i] = x + h;
    const double above = loss(values), up = values[i];
    values[i] = x - h;
    result[i] = (above - loss(values)) / (up - values[i]);
    values[i] = x;
  }
  return result;
}

inline double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

/// `tolerance`: must cover the truncation of the differences, and the rounding of outputs to float,
/// which is about 2^-24 of their size divided by h.
inline void expect_near(const Floats& gradient, const Doubles& expected, double tolerance,
                        const char* what) {
  ASSERT_EQ(gradient.size(), expected.size());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(gradient[i], expected[i], tolerance) << what << " at " << i;
}

inline Floats random_floats(std::int64_t count, Random& random) {
  return floats(random_values({DataType::F32, count}, random));
}

}  // namespace stratplan::test
