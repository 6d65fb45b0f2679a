#pragma once
// Column sums of a row-major matrix, in double, at about the speed of memory. Rows are taken in
// blocks that fit the first-level cache. Within a block, a panel of sixteen columns keeps its sums
// in registers. The sums are never in float, so their rounding error is negligible.
#include <cstdint>

#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vectors.hpp"

namespace stratplan::cpu {

inline constexpr std::int64_t summed_columns = 16;

/// Adds the terms of rows [first_row, last_row) in the sixteen columns from `column` on to
/// term.sums. A `Term` has Term::count (1 or 2) sums per column, in an array term.sums of shape
/// [count][channels]. add(element, column, first, last) adds the terms of four columns to `first`
/// and `last`. add_one(element, column, channels) adds the terms of one column to term.sums.
template <class Term>
[[gnu::always_inline]] inline void sum_panel(const Term& term, std::int64_t first_row,
                                             std::int64_t last_row, std::int64_t column,
                                             std::int64_t channels) {
  double* const first = term.sums + column;
  double* const last = term.sums + (Term::count - 1) * channels + column;
  // Named variables stay in registers, but an array would not.
  Double4 a0 = load<Double4>(first), a1 = load<Double4>(first + 4);
  Double4 a2 = load<Double4>(first + 8), a3 = load<Double4>(first + 12);
  Double4 b0 = load<Double4>(last), b1 = load<Double4>(last + 4);
  Double4 b2 = load<Double4>(last + 8), b3 = load<Double4>(last + 12);
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::int64_t element = row * channels + column;
    term.add(element, column, a0, b0);
    term.add(element + 4, column + 4, a1, b1);
    term.add(element + 8, column + 8, a2, b2);
    term.add(element + 12, column + 12, a3, b3);
  }
  if (Term::count > 1) {
    store(last, b0);
    store(last + 4, b1);
    store(last + 8, b2);
    store(last + 12, b3);
  }
  store(first, a0);
  store(first + 4, a1);
  store(first + 8, a2);
  store(first + 12, a3);
}

/// Adds the terms of all rows in columns [begin, end) to term.sums.
template <class Term>
[[gnu::always_inline]] inline void sum_columns(const Term& term, std::int64_t rows,
                                               std::int64_t channels, std::int64_t begin,
                                               std::int64_t end) {
  const std::int64_t block = std::max<std::int64_t>(4, 4096 / channels);
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t last = std::min(rows, first + block);
    std::int64_t column = begin;
    for (; column + summed_columns <= end; column += summed_columns)
      sum_panel(term, first, last, column, channels);
    if (column == end) continue;
    for (std::int64_t row = first; row < last; ++row)
      for (std::int64_t c = column; c < end; ++c) term.add_one(row * channels + c, c, channels);
  }
}

}  // namespace stratplan::cpu
