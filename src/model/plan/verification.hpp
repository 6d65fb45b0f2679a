#pragma once
// What a comparison of a plan's first step with an undivided run found.
#include <cstdint>
#include <string>

namespace stratplan {

/// Differences are not numbers where one of the two runs' values is not.
struct VerificationResult {
  double loss_difference = 0;      ///< relative
  double gradient_difference = 0;  ///< of the worst tensor: ||a - b|| / max(||a||, its floor), a
                                   ///< the undivided run's (runtime/verify/verify.hpp)
  std::string worst_tensor;        ///< a gradient, or "relu1.output"
  double tolerance = 0;            ///< for each of the differences
  std::int64_t turned = 0;         ///< decisions at ReLUs and maxima that rounding turned and that
                                   ///< were undone before comparing
  bool passed = false;             ///< the loss and every tensor are within the tolerance
  friend bool operator==(const VerificationResult&, const VerificationResult&) = default;
};

}  // namespace stratplan
