#pragma once
// Operations on rows of costs.
#include <limits>
#include <vector>

namespace stratplan {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Adds `terms` to `sum`, index by index.
inline void add_to(std::vector<double>& sum, const std::vector<double>& terms) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += terms[i];
}

}  // namespace stratplan
