#pragma once
// Intervals are half-open ranges of indices, and a region has one interval per axis. block()
// divides an extent into balanced blocks, and block_of() is its inverse.
//
// Worked table: block(10, parts, i, quantum) for i = 0, 1, 2.
//   parts 3, quantum 1:  [0,4) [4,7) [7,10)  10 mod 3 = 1, so the first block is one element longer
//   parts 3, quantum 4:  [0,4) [4,8) [8,10)  10 elements are 3 quanta of 4, 4 and 2 elements, and
//                                            each block has one of them
#include <array>
#include <cstdint>
#include <string>

#include "model/network/shape.hpp"

namespace stratplan {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(Interval other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  friend constexpr bool operator==(Interval, Interval) = default;
};

constexpr Interval intersect(Interval a, Interval b) {
  const Interval both{a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
  return both.empty() ? Interval{} : both;
}

/// Returns the index-th of `parts` balanced blocks of [0, extent). A block consists of whole
/// quanta, but the last quantum of the extent may be cut. If the quanta do not divide evenly, the
/// first blocks are one quantum longer. If `parts` exceeds the number of quanta, the last blocks
/// are empty. Requires 0 <= index < parts and quantum >= 1.
Interval divided_block(std::int64_t extent, std::int64_t parts, std::int64_t index,
                       std::int64_t quantum);
inline Interval block(std::int64_t extent, std::int64_t parts, std::int64_t index,
                      std::int64_t quantum = 1) {
  if (parts == 1 && index == 0) return {0, extent};  // most axes are undivided
  return divided_block(extent, parts, index, quantum);
}

/// Returns the index of the block that holds `element`: the inverse of block(). Requires
/// 0 <= element < extent.
std::int64_t block_of(std::int64_t extent, std::int64_t parts, std::int64_t element,
                      std::int64_t quantum = 1);

/// A product of intervals in global coordinates, one per axis N, C, D, H, W.
struct Region {
  std::array<Interval, axis_count> interval{};

  constexpr Interval& operator[](Axis axis) { return interval[static_cast<int>(axis)]; }
  constexpr Interval operator[](Axis axis) const { return interval[static_cast<int>(axis)]; }
  Shape shape() const;
  std::int64_t elements() const { return shape().elements(); }
  bool empty() const { return elements() == 0; }
  bool contains(const Region& other) const;
  friend bool operator==(const Region&, const Region&) = default;
};

/// Returns the region that holds a whole tensor.
Region whole(const Shape& shape);
/// Returns the region, shifted along each axis by that axis's entry in `by`.
Region moved(const Region& region, const std::array<std::int64_t, axis_count>& by);
/// Returns the common part of two regions. If it is empty on one axis, the result is empty on all
/// axes.
Region intersect(const Region& a, const Region& b);
/// Whether the elements of `part` follow each other in a dense buffer over the region `all`, which
/// contains `part`. The memory order is N, D, H, W, C.
bool is_contiguous(const Region& part, const Region& all);
/// Returns the offset of the region `part` in a dense buffer over the region `all`, in elements.
/// `part` lies inside `all`, and is contiguous in the buffer.
std::int64_t elements_before(const Region& part, const Region& all);
/// "[0,4) [0,64) [0,1) [0,57) [0,112)"
std::string to_string(const Region& region);

}  // namespace stratplan
