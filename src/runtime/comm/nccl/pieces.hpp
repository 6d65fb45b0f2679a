#pragma once
// Splits collectives whose pieces differ in size, because NCCL has no such collectives.
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

/// Stores in `pieces` the pieces of a reduce-scatter or an all-gather, without empty pieces, if
/// they differ in size. The collective is then a reduction to, or a broadcast from, each member
/// with a piece. If all pieces are equal, the list is empty, and NCCL's own collective applies. The
/// caller keeps `pieces`, so that repeated calls do not allocate memory.
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
