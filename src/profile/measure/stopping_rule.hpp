#pragma once
// The rule by which sampling stops. It works on numbers alone and reads no clock.
#include <span>

#include "model/base/units.hpp"

namespace stratplan {

struct StoppingRule {
  int least_samples = 5;
  int least_expensive = 3;  ///< this many samples are enough if they took `patience`
  int most_samples = 400;
  /// least time to spend, because noise changes from one millisecond to the next
  Seconds enough{0.025};
  Seconds patience{0.15};   ///< most time to spend
  double precision = 0.01;  ///< relative error of the median that is good enough

  /// Returns how many samples to take next, or 0 to stop. `spent`: time since the first sample
  /// began.
  int further_samples(std::span<const double> samples, Seconds spent) const;
};

}  // namespace stratplan
