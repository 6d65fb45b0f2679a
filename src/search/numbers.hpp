#pragma once
// Operations on rows of costs.
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace stratplan {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// As std::allocator, but leaves elements uninitialized that are given no value.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U, class... Values>
  void construct(U* place, Values&&... values) {
    if constexpr (sizeof...(Values) == 0)
      ::new (static_cast<void*>(place)) U;
    else
      ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
  }
};
/// Entries of a table that may be large. Their memory is first touched where they are computed.
using Entries = std::vector<double, UninitializedAllocator<double>>;

/// Adds `terms` to `sum`, index by index.
inline void add_to(std::vector<double>& sum, const std::vector<double>& terms) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += terms[i];
}

}  // namespace stratplan
