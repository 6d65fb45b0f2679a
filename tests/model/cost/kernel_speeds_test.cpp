#include "model/machine/kernel_speeds.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/base/json/json.hpp"
#include "model/cost/op_cost.hpp"

namespace stratplan {
namespace {

Kernel pointwise(KernelKind kind, std::int64_t channels) {
  Kernel kernel{.kind = kind};
  kernel.x = kernel.y = {{1, channels, 1, 1, 64}};
  return kernel;
}

constexpr auto forward = KernelKind::ConvolutionForward,
               backward = KernelKind::ConvolutionBackwardData;

TEST(KernelSpeeds, CorrectTheEstimatesOfAFamily) {
  KernelSpeeds speeds;
  EXPECT_FALSE(speeds.correction(pointwise(forward, 8)));
  speeds.add(pointwise(forward, 8), {2}, {1});
  speeds.add(pointwise(forward, 16), {8}, {1});
  const auto known = speeds.correction(pointwise(forward, 32));
  ASSERT_TRUE(known);
  EXPECT_NEAR(known->factor, 4, 1e-12);  // the geometric mean of 2 and 8
  // Two assumed kernels of deviation 0.35, and two whose logarithms are ln 2 from their mean.
  const double variance = (2 * 0.35 * 0.35 + 2 * std::pow(std::log(2), 2)) / 4;
  EXPECT_NEAR(known->deviation, std::sqrt(variance * 1.5), 1e-12);
}

TEST(KernelSpeeds, TakeTheNearestGroupThatWasMeasured) {
  KernelSpeeds speeds;
  speeds.add(pointwise(forward, 8), {2}, {1});
  EXPECT_NEAR(speeds.correction(pointwise(backward, 8))->factor, 2, 1e-12);  // the family
  Kernel product = pointwise(forward, 8);
  product.x = product.y = {{8, 8, 1, 1, 1}};
  ASSERT_NE(family_of(product), family_of(pointwise(forward, 8)));
  EXPECT_NEAR(speeds.correction(product)->factor, 2, 1e-12);  // all contractions
  EXPECT_FALSE(speeds.correction(pointwise(KernelKind::Fill, 8)));
  Kernel narrow = pointwise(forward, 8);
  narrow.type = DataType::F16;
  EXPECT_FALSE(speeds.correction(narrow));
  speeds.add(pointwise(backward, 8), {5}, {1});
  EXPECT_NEAR(speeds.correction(pointwise(backward, 16))->factor, 5, 1e-12);
  EXPECT_EQ(speeds.measured_like(pointwise(backward, 16)), 1);
}

TEST(KernelSpeeds, AreReadBack) {
  KernelSpeeds speeds;
  speeds.add(pointwise(forward, 8), {2}, {1});
  speeds.add(pointwise(backward, 8), {3}, {1});
  speeds.add(pointwise(backward, 8), {4}, {1});
  EXPECT_EQ(kernel_speeds_from(to_json(speeds)), speeds);
  EXPECT_TRUE(kernel_speeds_from(Json::object()).empty());
}

TEST(KernelSpeeds, PriceKernelsThatWereNotMeasured) {
  MachineProfile machine;
  machine.device = {1e9, 1e9, {1e-6}, {1 << 30}};
  const Kernel kernel = pointwise(forward, 8);
  const Seconds estimate = cost_of(kernel, machine).seconds;
  machine.speeds.add(pointwise(forward, 16), {3}, {1});
  const OpCost corrected = cost_of(kernel, machine);
  EXPECT_NEAR(corrected.seconds / estimate, 3, 1e-12);
  EXPECT_EQ(corrected.tier, Tier::Calibrated);
  EXPECT_GT(corrected.doubt, 0.35);
  EXPECT_EQ(corrected.deviation.value, 0) << "no deviation from one run to the next";
  machine.kernels[kernel.key()].median = {1};
  EXPECT_EQ(cost_of(kernel, machine).doubt, 0);
}

}  // namespace
}  // namespace stratplan
