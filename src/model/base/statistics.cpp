#include "model/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "model/base/assert.hpp"

namespace stratplan {

double quantile(std::span<const double> samples, double fraction) {
  SP_ASSERT(!samples.empty() && 0 <= fraction && fraction <= 1, "samples={} fraction={}",
            samples.size(), fraction);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

double relative_error_of_median(std::span<const double> samples) {
  const double middle = median(samples);
  if (middle <= 0) return 0;
  const double deviation = (quantile(samples, 0.75) - quantile(samples, 0.25)) / 1.349;
  return 1.253 * deviation / std::sqrt(static_cast<double>(samples.size())) / middle;
}

double expected_maximum(int count) {
  SP_ASSERT(count >= 1, "count={}", count);
  if (count == 1) return 0;
  const double above = 0.625 / (count + 0.25);  // what lies above the quantile
  double x = std::sqrt(2 * std::log(static_cast<double>(count)));
  for (int step = 0; step < 8; ++step) {  // Newton's method
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    x += (0.5 * std::erfc(x / std::numbers::sqrt2) - above) / density;
  }
  return x;
}

}  // namespace stratplan
