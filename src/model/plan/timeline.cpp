#include "model/plan/timeline.hpp"

#include "model/base/statistics.hpp"

namespace stratplan {

Seconds Timing::quantile(double fraction) const {
  std::vector<double> samples;
  for (const Seconds step : steps) samples.push_back(step.value);
  return {stratplan::quantile(samples, fraction)};
}

Seconds Timing::median() const { return quantile(0.5); }

}  // namespace stratplan
