#pragma once
// The result of comparing a plan's first step with an undivided run.
#include <cstdint>
#include <string>

namespace stratplan {

/// Differences are NaN if a value of either run is NaN.
struct VerificationResult {
  double loss_difference = 0;  ///< relative
  /// of the worst tensor: ||a - b|| / max(||a||, its floor), where a is the tensor of the undivided
  /// run, and b that of the plan's run. The floor is measured (runtime/verify/verify.hpp)
  double gradient_difference = 0;
  std::string worst_tensor;  ///< name of a gradient or an output: "relu1.output"
  double tolerance = 0;      ///< limit for each of the differences
  /// number of decisions at ReLUs and maxima that rounding reversed; the runs are compared with
  /// equal decisions
  std::int64_t turned = 0;
  bool passed = false;  ///< the loss and every tensor are within the tolerance
  friend bool operator==(const VerificationResult&, const VerificationResult&) = default;
};

}  // namespace stratplan
