#pragma once
// The record of predictions: their errors by case and by kind of op, the order of plans, regret,
// and how often ranges hold the measured step.
#include <optional>
#include <string>
#include <vector>

#include "report/table.hpp"
#include "tuner/validation.hpp"

namespace stratplan {

/// What a list of cases shows. Errors are predicted / measured - 1.
struct ValidationSummary {
  std::size_t cases = 0;     ///< with a result
  double mean_error = 0;     ///< mean of the absolute errors
  double worst_error = 0;    ///< the one with the greatest absolute value
  std::string worst;         ///< its case
  std::size_t in_range = 0;  ///< cases whose measured step lies in the predicted 80 % range
  double median_width = 1;   ///< of ranges: high / low
  int repetitions = 0;       ///< runs that were repeated because other processes ran
  /// pairs of plans of one group whose measured steps differ by more than the spread of their
  /// rounds, and those of them that are predicted in the same order
  std::size_t pairs = 0, in_order = 0;
};
ValidationSummary summary_of(const std::vector<const ValidatedCase*>& cases);

/// A group of cases that differ in their plans: how much slower is the plan that is predicted
/// fastest than the one that was measured fastest?
struct GroupRegret {
  std::string group;
  std::size_t plans = 0;
  std::string predicted, measured;  ///< plans of the two cases
  double regret = 0;                ///< measured step of the first / that of the second - 1
};
/// Groups of at least two plans with results, the greatest regret first.
std::vector<GroupRegret> regrets_of(const std::vector<const ValidatedCase*>& cases);

/// Errors of one kind of op over all local cases.
struct KindError {
  std::string kind;       ///< "compute", "exchange", "collective"
  std::size_t cases = 0;  ///< in which the kind takes at least 2 % of the measured step
  double mean_error = 0;  ///< mean of the absolute errors in these cases
  double worst = 0;       ///< the error with the greatest absolute value
  /// mean over these cases of the error's part of the measured step, signed
  double mean_of_step = 0;
};
/// Only of plans without messages beside kernels.
std::vector<KindError> kind_errors(const std::vector<const ValidatedCase*>& cases);

/// Returns the text of accuracy.md.
std::string validation_report(const ValidationResult& result);
/// One line per case. The columns' names hold the units.
std::string validation_csv(const ValidationResult& result);
/// Measured against predicted steps, as SVG.
std::string validation_chart(const ValidationResult& result);
/// The error of each case with its range, the greatest first; then of each kind of op, as SVG.
std::string validation_error_chart(const ValidationResult& result);

}  // namespace stratplan
