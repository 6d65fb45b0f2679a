#pragma once
// The least of many costs that are slow to tell, from bounds of them.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace stratplan {

/// The index of the least cost below `limit`, if there is one. `bounds[i]` is no more than
/// `cost(i)`, which is asked for in the order of the bounds, until none is lower than the least
/// cost, or too often.
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
