#pragma once
// Cross-validation of the fit: errors of rows that it did not see.
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

/// Standard deviations of log(predicted / measured) that the error model states for the cases: one
/// for the device, one for each family, one for each kernel (machine/error_model.hpp).
std::vector<double> stated_deviations(const ShareModel& model, const std::vector<Case>& cases,
                                      const FitResult& fit);

/// The share of errors within the range from the 10th to the 90th percentile, and the median ratio
/// of both.
struct Coverage {
  double covered = 0, width = 0;
};
Coverage coverage_of(const std::vector<double>& errors, const std::vector<double>& deviations);

}  // namespace stratplan::calibration
