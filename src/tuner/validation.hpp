#pragma once
// Validation: the prediction of each case is made first, and then compared with a measurement: of
// runs here, or of others. Here the plan's heaviest kernels are measured again before each run,
// because a shared machine's speed changes within a minute. Results are kept case by case, so a
// second call goes on where the first one ended.
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "model/machine/machine_profile.hpp"
#include "tuner/measured.hpp"
#include "tuner/validation_cases.hpp"

namespace stratplan {

struct ValidationRequest {
  std::vector<ValidationCase> cases;
  std::string backend;
  std::string link;  ///< what connects the ranks of this machine now
  std::uint64_t seed = 1;
  int rounds = 3;                ///< runs of each local case
  std::filesystem::path folder;  ///< holds a folder for each local case
  bool fresh = false;            ///< run cases again that the folder holds
  Provenance provenance;
};

struct ValidatedCase {
  ValidationCase of;
  std::string failure{};            ///< why there is no result; empty: there is one
  PlanAndNetwork planned{};         ///< with its prediction, of rounds the middle one
  MachineProfile machine{};         ///< on which the prediction rests
  Measured measured{};              ///< medians of the rounds; of others: only the median
  std::filesystem::path timings{};  ///< of the round whose prediction is given

  bool has_result() const { return failure.empty(); }
  const Prediction& predicted() const { return *planned.plan.prediction; }
  /// predicted / measured - 1
  double error() const { return predicted().step / measured.median - 1; }
  bool within_range() const {
    return is_within(measured.median.value, predicted().certainty->step);
  }
};

struct ValidationResult {
  std::vector<ValidatedCase> cases;  ///< in the order of the request
  std::size_t elsewhere = 0;         ///< local cases of other links of which no results are kept
  bool interrupted = false;          ///< cases that are left are not in `cases`
};

/// Predicts all cases, and runs the local ones over the request's link. A case that cannot be
/// planned or run has a failure and ends nothing.
ValidationResult validate(const ValidationRequest& request, Log& log);

}  // namespace stratplan
