#include "profile/measure/statistics.hpp"

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/base/statistics.hpp"

namespace stratplan {

Measurement summarize(const std::vector<std::vector<double>>& samples_of_ranks) {
  Measurement measurement;
  int ranks = 0;
  for (const std::vector<double>& samples : samples_of_ranks) {
    if (samples.empty()) continue;
    ++ranks;
    measurement.median += Seconds{median(samples)};
    measurement.p10 += Seconds{quantile(samples, 0.1)};
    measurement.p90 += Seconds{quantile(samples, 0.9)};
    measurement.samples = std::max(measurement.samples, static_cast<int>(samples.size()));
  }
  SP_ASSERT(ranks > 0, "{} ranks have samples, but at least 1 must have some", ranks);
  for (Seconds* value : {&measurement.median, &measurement.p10, &measurement.p90})
    *value = *value / ranks;
  return measurement;
}

}  // namespace stratplan
