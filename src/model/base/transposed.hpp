#pragma once
// Transposes of matrices.
#include <algorithm>
#include <cstddef>

namespace stratplan {

/// Returns a row-major matrix of so many rows and columns with rows and columns exchanged. Goes
/// tile by tile, because neighbours in a column lie in different lines of the cache. `Numbers`: a
/// vector.
template <class Numbers>
Numbers transposed(const Numbers& from, std::size_t rows, std::size_t columns) {
  constexpr std::size_t side = 16;  // a tile's rows, and those of its transpose, fit into a cache
  Numbers values(from.size());
  for (std::size_t row = 0; row < rows; row += side)
    for (std::size_t column = 0; column < columns; column += side)
      for (std::size_t r = row; r < std::min(row + side, rows); ++r)
        for (std::size_t c = column; c < std::min(column + side, columns); ++c)
          values[c * rows + r] = from[r * columns + c];
  return values;
}

}  // namespace stratplan
