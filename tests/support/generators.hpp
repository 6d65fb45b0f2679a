#pragma once
// Random values for rapidcheck properties, drawn where they are used, for example `const Window
// window = any_window(extent);`. Call these functions only inside a property.
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/network/window.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan::test {

/// Returns a number from `low` to `high`, both included.
inline int any_int(int low, int high) { return *rc::gen::inRange(low, high + 1); }

template <class Value>
const Value& any_of(const std::vector<Value>& values) {
  return values[static_cast<std::size_t>(any_int(0, static_cast<int>(values.size()) - 1))];
}

/// Returns a window with an odd or even kernel, a stride that may exceed the kernel, dilation, and
/// asymmetric padding. It has at least one position over an input of this extent.
inline Window any_window(std::int64_t extent) {
  Window window;
  window.stride = any_int(1, 3);
  window.dilation = any_int(1, 2);
  window.pad_before = any_int(0, 2);
  window.pad_after = any_int(0, 2);
  const std::int64_t padded = extent + window.pad_before + window.pad_after;
  const std::int64_t largest = std::min<std::int64_t>(5, (padded - 1) / window.dilation + 1);
  window.kernel = any_int(1, static_cast<int>(largest));
  return window;
}

/// Like any_window, but each position reads an element of the tensor, as pooling requires.
inline Window any_pooling_window(std::int64_t extent) {
  Window window = any_window(extent);
  window.dilation = 1;
  window.kernel = std::min(window.kernel, extent);
  window.pad_before = std::min(window.pad_before, window.kernel - 1);
  window.pad_after = std::min(window.pad_after, window.kernel - 1);
  return window;
}

/// Returns a random factorization of `ranks` over `dims`.
inline ProcessGrid::Factors any_factors(int ranks, const std::vector<Dim>& dims) {
  ProcessGrid::Factors factors{1, 1, 1, 1, 1, 1, 1};
  for (int divisor = 2; ranks > 1;) {
    if (ranks % divisor != 0) {
      ++divisor;
      continue;
    }
    factors[static_cast<std::size_t>(any_of(dims))] *= divisor;
    ranks /= divisor;
  }
  return factors;
}

inline ProcessGrid any_grid(const Topology& topology, const std::vector<Dim>& dims) {
  std::vector<ProcessGrid::Factors> levels;
  for (const int ranks : topology) levels.push_back(any_factors(ranks, dims));
  return ProcessGrid(levels);
}

/// Returns a topology of one to twelve ranks, in one or two levels.
inline Topology any_topology() {
  static const std::vector<Topology> topologies{{1},    {2},    {3},    {4},    {5},
                                                {6},    {8},    {12},   {2, 2}, {2, 3},
                                                {3, 2}, {2, 4}, {4, 2}, {3, 4}, {2, 6}};
  return any_of(topologies);
}

/// Choices for a distribution over `grid`: each dimension splits the axis `axis` names, or none
/// (-1) and then has the role `other`. R is Redundant.
struct AxisChoice {
  std::array<int, dim_count> axis{-1, -1, -1, -1, -1, -1, -1};
  Role other = Role::Gathered;
};
inline Distribution make_distribution(const Shape& shape, const ProcessGrid& grid,
                                      const AxisChoice& choice) {
  Distribution distribution;
  distribution.shape = shape;
  distribution.grid = grid;
  for (const Dim dim : all_dims) {
    const std::size_t d = static_cast<std::size_t>(dim);
    if (choice.axis[d] >= 0) {
      distribution.splits[static_cast<std::size_t>(choice.axis[d])].by.push_back(dim);
      distribution.roles[d] = Role::Block;
    } else {
      distribution.roles[d] = dim == Dim::R ? Role::Redundant : choice.other;
    }
  }
  return distribution;
}

}  // namespace stratplan::test
