#include "model/base/robust_fit.hpp"

#include <cmath>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// A symmetric positive definite matrix, row by row, and its Cholesky factor in the same place.
class Matrix {
 public:
  explicit Matrix(std::size_t size) : size_(size), entries_(size * size) {}
  double& at(std::size_t row, std::size_t column) { return entries_[row * size_ + column]; }

  /// Replaces the matrix by its factor. Only the lower triangle is read and written.
  void factorize() {
    for (std::size_t j = 0; j < size_; ++j) {
      for (std::size_t k = 0; k < j; ++k)
        for (std::size_t i = j; i < size_; ++i) at(i, j) -= at(i, k) * at(j, k);
      SP_ASSERT(at(j, j) > 0, "pivot {} is {}", j, at(j, j));
      const double root = std::sqrt(at(j, j));
      for (std::size_t i = j; i < size_; ++i) at(i, j) /= root;
    }
  }
  /// Solves matrix * x = b with the factor.
  std::vector<double> solve(std::vector<double> b) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= at(i, k) * b[k];
      b[i] /= at(i, i);
    }
    for (std::size_t i = size_; i-- > 0;) {
      for (std::size_t k = i + 1; k < size_; ++k) b[i] -= at(k, i) * b[k];
      b[i] /= at(i, i);
    }
    return b;
  }

 private:
  std::size_t size_;
  std::vector<double> entries_;
};

class Solver {
 public:
  explicit Solver(const FitProblem& problem) : problem_(problem) {}

  FitResult run(std::vector<double> constants) {
    constexpr int most_steps = 60;
    constexpr double enough = 1e-7;  // relative gain at which the fit ends
    double misfit = linearize(constants), damping = 1e-3;
    for (int step = 0; step < most_steps; ++step) {
      const auto [moved, lower] = improve(constants, misfit, damping);
      if (!(lower < misfit)) break;
      const bool done = misfit - lower < enough * misfit;
      constants = moved;
      misfit = linearize(constants);
      if (done) break;
    }
    return {constants, deviations(), misfit};
  }

 private:
  std::size_t size() const { return problem_.prior.size(); }

  double weight(std::size_t row) const {
    return problem_.weights.empty() ? 1 : problem_.weights[row];
  }
  double rho(double x) const {
    return problem_.tails > 0 ? problem_.tails * std::log1p(x * x / problem_.tails) : x * x;
  }
  double misfit_of(const Residuals& residuals, const std::vector<double>& constants) const {
    double sum = 0;
    for (std::size_t row = 0; row < residuals.values.size(); ++row)
      sum += weight(row) * rho(residuals.values[row] / problem_.noise);
    for (std::size_t i = 0; i < size(); ++i) {
      const double off = (constants[i] - problem_.prior[i]) / problem_.deviation[i];
      sum += off * off;
    }
    return sum;
  }

  /// Sets curvature and gradient at these constants. Returns the misfit.
  double linearize(const std::vector<double>& constants) {
    const Residuals residuals = problem_.residuals(constants);
    curvature_ = Matrix(size());
    gradient_.assign(size(), 0);
    for (std::size_t i = 0; i < size(); ++i) {
      const double precision = 1 / (problem_.deviation[i] * problem_.deviation[i]);
      curvature_.at(i, i) = precision;
      gradient_[i] = precision * (constants[i] - problem_.prior[i]);
    }
    for (std::size_t row = 0; row < residuals.values.size(); ++row) {
      const double x = residuals.values[row] / problem_.noise;
      const double counts = weight(row) / (problem_.tails > 0 ? 1 + x * x / problem_.tails : 1) /
                            (problem_.noise * problem_.noise);
      for (const auto& [i, by_i] : residuals.derivatives[row]) {
        gradient_[static_cast<std::size_t>(i)] += counts * residuals.values[row] * by_i;
        for (const auto& [j, by_j] : residuals.derivatives[row])
          curvature_.at(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) +=
              counts * by_i * by_j;
      }
    }
    return misfit_of(residuals, constants);
  }

  /// Tries steps of falling length until one lowers the misfit.
  std::pair<std::vector<double>, double> improve(const std::vector<double>& constants,
                                                 double misfit, double& damping) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      Matrix damped = curvature_;
      for (std::size_t i = 0; i < size(); ++i) damped.at(i, i) *= 1 + damping;
      damped.factorize();
      const std::vector<double> step = damped.solve(gradient_);
      std::vector<double> moved = constants;
      for (std::size_t i = 0; i < size(); ++i) moved[i] -= step[i];
      const double found = misfit_of(problem_.residuals(moved), moved);
      if (found < misfit) {
        damping /= 5;
        return {moved, found};
      }
      damping *= 6;
    }
    return {constants, misfit};
  }

  std::vector<double> deviations() {
    curvature_.factorize();
    std::vector<double> found(size());
    for (std::size_t i = 0; i < size(); ++i) {
      std::vector<double> unit(size());
      unit[i] = 1;
      found[i] = std::sqrt(curvature_.solve(unit)[i]);
    }
    return found;
  }

  const FitProblem& problem_;
  Matrix curvature_{0};
  std::vector<double> gradient_;
};

}  // namespace

FitResult robust_fit(const FitProblem& problem, const std::vector<double>& start) {
  SP_ASSERT(problem.prior.size() == problem.deviation.size() && problem.noise > 0,
            "{} priors, {} deviations, noise {}", problem.prior.size(), problem.deviation.size(),
            problem.noise);
  return Solver(problem).run(start.empty() ? problem.prior : start);
}

}  // namespace stratplan
