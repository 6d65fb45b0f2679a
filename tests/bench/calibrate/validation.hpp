#pragma once
// Cross-validation of the fit: errors of rows that it did not see.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "bench/calibrate/share_model.hpp"

namespace stratplan::calibration {

/// How far predictions are from measurements, as factors.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;    ///< of |predicted / measured - 1|
  double bias = 0;      ///< median of predicted / measured - 1
  double within20 = 0;  ///< share of rows with an error of at most 20 %
  double within35 = 0;
};
ErrorSummary summary_of(const std::vector<double>& errors);

/// Returns log(predicted / measured) of every row, each from a fit that saw no row with the same
/// name. The names are dealt out to `folds` fits, in an order that depends on nothing but them.
/// `errors_with`: fits with these weights, and returns the errors of all rows.
std::vector<double> errors_left_out(
    const std::vector<std::string>& names, std::size_t folds, const std::vector<double>& weights,
    const std::function<std::vector<double>(const std::vector<double>& weights)>& errors_with);

/// The error that the model states for a case (machine/error_model.hpp): standard deviations of
/// log(predicted / measured).
struct StatedError {
  std::array<double, kernel_family_count> families{};
  double kernels = 0;  ///< of all single kernels together
  double device = 0;
  /// of the case alone
  double deviation() const;
};
/// The standard deviation of the ratio of two cases of one device, whose error cancels.
double deviation_of_ratio(const StatedError& a, const StatedError& b);
std::vector<StatedError> stated_errors(const ShareModel& model, const std::vector<Case>& cases,
                                       const FitResult& fit);

/// Pairs of two networks' steps that were measured on one device with one software and arithmetic,
/// of which one took 1.1 to 2 times as long.
struct Ties {
  std::size_t pairs = 0, called_ties = 0, wrong_order = 0;
};
/// `errors`: log(predicted / measured) by case.
Ties ties_among(const std::vector<Case>& cases, const std::vector<double>& errors,
                const std::vector<StatedError>& stated);

/// The share of errors within the range from the 10th to the 90th percentile, and the median ratio
/// of both.
struct Coverage {
  double covered = 0, width = 0;
};
Coverage coverage_of(const std::vector<double>& errors, const std::vector<double>& deviations);

}  // namespace stratplan::calibration
