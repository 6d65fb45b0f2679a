#include "model/base/robust_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace stratplan {
namespace {

/// A line through points: value = constants[0] + constants[1] * x.
FitProblem line(std::vector<std::pair<double, double>> points, double prior_deviation) {
  FitProblem problem;
  problem.prior = {0, 0};
  problem.deviation = {prior_deviation, prior_deviation};
  problem.residuals = [points](const std::vector<double>& constants) {
    Residuals residuals;
    for (const auto& [x, y] : points) {
      residuals.values.push_back(constants[0] + constants[1] * x - y);
      residuals.derivatives.push_back({{0, 1}, {1, x}});
    }
    return residuals;
  };
  return problem;
}

TEST(RobustFit, FindsALineExactly) {
  const FitResult fit = robust_fit(line({{0, 1}, {1, 3}, {2, 5}, {3, 7}}, 1e6));
  EXPECT_NEAR(fit.constants[0], 1, 1e-6);
  EXPECT_NEAR(fit.constants[1], 2, 1e-6);
}

TEST(RobustFit, DeviationsAreThoseOfLinearRegression) {
  FitProblem problem = line({{-1, 0}, {0, 0}, {1, 0}, {2, 0}}, 1e6);
  problem.noise = 0.5;
  const FitResult fit = robust_fit(problem);
  // Inverse of [[4, 2], [2, 6]] times noise^2.
  EXPECT_NEAR(fit.deviations[0], 0.5 * std::sqrt(6.0 / 20), 1e-6);
  EXPECT_NEAR(fit.deviations[1], 0.5 * std::sqrt(4.0 / 20), 1e-6);
}

TEST(RobustFit, APointFarOffHardlyCounts) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 20; ++i) points.emplace_back(i, 1 + 2 * i + 0.01 * (i % 3 - 1));
  points.emplace_back(10, 200);
  FitProblem squares = line(points, 1e6);
  squares.noise = 0.05;
  FitProblem robust = squares;
  robust.tails = 3;
  EXPECT_GT(std::abs(robust_fit(squares).constants[0] - 1), 1);
  EXPECT_NEAR(robust_fit(robust).constants[0], 1, 0.05);
  EXPECT_NEAR(robust_fit(robust).constants[1], 2, 0.01);
}

TEST(RobustFit, WithoutDataTheConstantsKeepTheirPriors) {
  FitProblem problem = line({}, 0.3);
  problem.prior = {4, -2};
  const FitResult fit = robust_fit(problem);
  EXPECT_EQ(fit.constants, problem.prior);
  EXPECT_NEAR(fit.deviations[0], 0.3, 1e-12);
}

TEST(RobustFit, AnExponentialLawIsFound) {
  FitProblem problem;
  problem.prior = {0, 0};
  problem.deviation = {10, 10};
  problem.noise = 0.01;
  problem.residuals = [](const std::vector<double>& c) {
    Residuals residuals;
    for (double x = 1; x < 1e4; x *= 3) {
      const double moving = std::exp(c[0]) * x, fixed = std::exp(c[1]), time = moving + fixed;
      residuals.values.push_back(std::log(time / (0.25 * x + 30)));
      residuals.derivatives.push_back({{0, moving / time}, {1, fixed / time}});
    }
    return residuals;
  };
  const FitResult fit = robust_fit(problem);
  EXPECT_NEAR(std::exp(fit.constants[0]), 0.25, 1e-3);
  EXPECT_NEAR(std::exp(fit.constants[1]), 30, 0.1);
}

}  // namespace
}  // namespace stratplan
