#pragma once
// Finds the least of many costs that are slow to compute, with the help of their lower bounds.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace stratplan {

/// Returns the index of the least cost below `limit`, if there is one. `bounds[i]` is a lower bound
/// of `cost(i)`. Costs are computed in the order of their bounds, until no bound is below the least
/// cost. After `most_asked` costs the search ends with the least one so far.
template <class Cost>
std::optional<int> least_by_bounds(std::vector<double> bounds, double limit, const Cost& cost) {
  constexpr int most_asked = 4;
  std::optional<int> chosen;
  for (int asked = 0; asked < most_asked; ++asked) {
    const auto lowest = std::ranges::min_element(bounds);
    if (lowest == bounds.end() || *lowest >= limit) break;
    const int index = static_cast<int>(lowest - bounds.begin());
    *lowest = std::numeric_limits<double>::infinity();
    if (const double exact = cost(index); exact < limit) {
      limit = exact;
      chosen = index;
    }
  }
  return chosen;
}

}  // namespace stratplan
