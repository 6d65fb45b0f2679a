#pragma once
// Sums down the columns of a row-major matrix, in double, at the speed at which memory delivers it: rows are taken in blocks that fit the first-level
// cache, and within a block a panel of sixteen columns keeps its sums in registers. No float sums: there is no error to argue about.
#include <cstdint>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

inline constexpr std::int64_t panel_columns = 16;

using Float8 = float __attribute__((vector_size(32), aligned(4), may_alias));
using Double8 = double __attribute__((vector_size(64), aligned(8), may_alias));

/// A `Term` makes the summands of the Term::count (1 or 2) sums that each column has: add(element, column, first, last) those of eight columns,
/// add_one(element, column, channels) those of one, straight into term.sums, [count][channels].
template <class Term>
[[gnu::always_inline]] inline void sum_panel(const Term& term, std::int64_t first_row, std::int64_t last_row, std::int64_t column, std::int64_t channels) {
  Double8 sums[Term::count][2];
  for (int s = 0; s < Term::count; ++s)
    for (int half = 0; half < 2; ++half) sums[s][half] = *reinterpret_cast<const Double8*>(term.sums + s * channels + column + half * 8);
  for (std::int64_t row = first_row; row < last_row; ++row) {
    term.add(row * channels + column, column, sums[0][0], sums[Term::count - 1][0]);
    term.add(row * channels + column + 8, column + 8, sums[0][1], sums[Term::count - 1][1]);
  }
  for (int s = 0; s < Term::count; ++s)
    for (int half = 0; half < 2; ++half) *reinterpret_cast<Double8*>(term.sums + s * channels + column + half * 8) = sums[s][half];
}

/// Adds the terms of all rows in columns [begin, end) to term.sums.
template <class Term>
[[gnu::always_inline]] inline void sum_columns(const Term& term, std::int64_t rows, std::int64_t channels, std::int64_t begin, std::int64_t end) {
  const std::int64_t block = std::max<std::int64_t>(4, 4096 / channels);
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t last = std::min(rows, first + block);
    std::int64_t column = begin;
    for (; column + panel_columns <= end; column += panel_columns) sum_panel(term, first, last, column, channels);
    if (column == end) continue;
    for (std::int64_t row = first; row < last; ++row)
      for (std::int64_t c = column; c < end; ++c) term.add_one(row * channels + c, c, channels);
  }
}

}  // namespace stratplan::cpu
