// Compares kernel estimates with published times of single devices. The errors must not grow.
#include "support/calibration.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stratplan {
namespace {

void expect_within(const test::Figure& figure, double tolerance) {
  const double predicted = test::predicted_seconds(test::calibration_case(figure));
  EXPECT_NEAR(predicted / figure.seconds, 1, tolerance) << fmt::format(
      "{} {} batch {} {}: published {} s, predicted {} s", figure.device, figure.network,
      figure.batch, figure.training ? "training" : "inference", figure.seconds, predicted);
}

TEST(Calibration, PublishedFiguresAreMet) {
  for (const test::Figure& figure : test::published_figures()) expect_within(figure, 0.12);
}

TEST(Calibration, FiguresItWasNotFittedToAreMet) {
  for (const test::Figure& figure : test::held_out_figures()) expect_within(figure, 0.12);
}

}  // namespace
}  // namespace stratplan
