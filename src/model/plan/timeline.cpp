#include "model/plan/timeline.hpp"

#include <array>

#include "model/base/statistics.hpp"

namespace stratplan {

Seconds Timing::quantile(double fraction) const {
  std::vector<double> samples;
  for (const Seconds step : steps) samples.push_back(step.value);
  return {stratplan::quantile(samples, fraction)};
}

std::string_view name_of(RunPart::What what) {
  constexpr std::array<std::string_view, run_part_count> names{"warm-up step", "step", "checkpoint",
                                                               "launched steps", "verification"};
  return names[static_cast<std::size_t>(what)];
}

Seconds Timing::median() const { return quantile(0.5); }

}  // namespace stratplan
