#include "profile/measure/stopping_rule.hpp"

#include <algorithm>

#include "model/base/statistics.hpp"
#include "profile/measure/statistics.hpp"

namespace stratplan {

int StoppingRule::further_samples(std::span<const double> samples, Seconds spent) const {
  const int taken = static_cast<int>(samples.size());
  if (taken < least_expensive) return least_expensive - taken;
  if (spent >= patience || taken >= most_samples) return 0;
  if (taken < least_samples) return least_samples - taken;
  if (spent >= enough && relative_error_of_median(samples) <= precision) return 0;
  // Doubles the number of samples, as far as time allows, so that there are few rounds.
  const double each = std::max(spent.value / taken, 1e-9);
  const Seconds rest = (spent < enough ? enough : patience) - spent;
  const int affordable = static_cast<int>(std::min(rest.value / each + 1, 1e6));
  return std::clamp(std::min(affordable, std::max(taken, least_samples)), 1, most_samples - taken);
}

}  // namespace stratplan
