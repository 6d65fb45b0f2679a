#pragma once
// When to stop taking samples: knows numbers, no clocks.
#include <span>

#include "model/base/units.hpp"

namespace stratplan {

struct StoppingRule {
  int least_samples = 5;
  int least_expensive = 3;  ///< enough if they took `patience` already
  int most_samples = 400;
  /// time to spend at least, for the machine's mood changes from one millisecond to the next
  Seconds enough{0.025};
  Seconds patience{0.15};   ///< time to spend at most
  double precision = 0.01;  ///< relative error of the median that is good enough

  /// How many samples to take next; 0: stop. `spent`: time since the first sample, whatever it was
  /// spent on.
  int further_samples(std::span<const double> samples, Seconds spent) const;
};

}  // namespace stratplan
