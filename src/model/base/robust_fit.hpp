#pragma once
// Fits constants to noisy measurements by robust least squares with priors. It serves `stratplan
// calibrate` (planner/anchors) and tests/bench/calibrate alike.
#include <functional>
#include <utility>
#include <vector>

namespace stratplan {

/// Predicted minus measured values (of logarithms, as a rule), and how they depend on the
/// constants.
struct Residuals {
  std::vector<double> values;
  /// by residual: pairs of a constant's index and the derivative; absent pairs are zero
  std::vector<std::vector<std::pair<int, double>>> derivatives;
};

/// Minimizes, over the constants c,
///   sum of weight_i * rho(residual_i / noise) + sum of ((c_j - prior_j) / deviation_j)^2
/// where rho(x) = x^2, or n * log(1 + x^2 / n) with n = `tails` > 0. The latter is the likelihood
/// of Student's t distribution up to terms that do not matter: a row that is far off hardly counts
/// (K. Lange, R. Little, J. Taylor, JASA 84, 1989).
struct FitProblem {
  std::vector<double> prior, deviation;  ///< by constant
  std::function<Residuals(const std::vector<double>& constants)> residuals;
  std::vector<double> weights{};  ///< by residual; empty: 1
  double noise = 1;               ///< standard deviation of a residual
  double tails = 0;               ///< degrees of freedom of rho; 0: squares
};

struct FitResult {
  std::vector<double> constants;
  std::vector<double> deviations;  ///< of the constants, from the curvature at the minimum
  double misfit = 0;               ///< the minimized sum
};

/// Levenberg's and Marquardt's method with weights that are updated in each step, from `start` (the
/// priors if it is empty). Requires positive deviations and noise.
FitResult robust_fit(const FitProblem& problem, const std::vector<double>& start = {});

}  // namespace stratplan
