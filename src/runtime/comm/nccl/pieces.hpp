#pragma once
// Collectives of pieces, which NCCL has for equal ones alone.
#include <cstdint>
#include <span>
#include <vector>

namespace stratplan {

/// One member's piece of a buffer, in elements.
struct Piece {
  int member = 0;
  std::int64_t begin = 0, count = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// What a reduce-scatter or an all-gather is made of where pieces differ in size: a reduction to,
/// or a broadcast from, each member with a piece that is not empty. None: all pieces are equal, and
/// the native collective does. `pieces` is given so that calls allocate once.
inline void split_pieces(std::span<const std::int64_t> counts, std::vector<Piece>& pieces) {
  pieces.clear();
  bool equal = true;
  std::int64_t begin = 0;
  for (std::size_t member = 0; member < counts.size(); ++member) {
    if (counts[member] > 0) pieces.push_back({static_cast<int>(member), begin, counts[member]});
    equal = equal && counts[member] == counts[0];
    begin += counts[member];
  }
  if (equal) pieces.clear();
}

}  // namespace stratplan
