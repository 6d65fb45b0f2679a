#pragma once
// Sorted ranges: search from a place that is near to what is sought, and lists as sets.
#include <algorithm>
#include <iterator>
#include <vector>

namespace stratplan {

/// Returns the first place in [from, end) where `before` is false; all earlier ones satisfy it. The
/// time is logarithmic in the distance from `from`, as in J. L. Bentley, A. C. Yao, An almost
/// optimal algorithm for unbounded searching, 1976.
template <class Iterator, class Before>
Iterator gallop(Iterator from, Iterator end, const Before& before) {
  std::ptrdiff_t step = 1;
  while (step < end - from && before(from[step - 1])) {
    from += step;
    step *= 2;
  }
  return std::partition_point(from, from + std::min(step, end - from), before);
}

/// Sorts the values and drops repetitions.
template <class Value>
void make_sorted_set(std::vector<Value>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace stratplan
