#include "model/timeline.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"

namespace stratplan {

Seconds Timing::quantile(double fraction) const {
  SP_ASSERT(!steps.empty() && fraction >= 0 && fraction <= 1, "steps={} fraction={}", steps.size(),
            fraction);
  std::vector<Seconds> sorted = steps;
  std::ranges::sort(sorted);
  // Linear between the two nearest samples.
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Seconds Timing::median() const { return quantile(0.5); }

}  // namespace stratplan
