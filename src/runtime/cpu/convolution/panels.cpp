#include "runtime/cpu/convolution/panels.hpp"

#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vectors.hpp"

namespace stratplan::cpu {
namespace {

/// Number of rows of a block whose sums stay in registers. A block has 16 columns, so its 12
/// vectors of sums, two loads and a broadcast fit the sixteen vector registers of AVX2.
constexpr std::int64_t block_rows = 6;

template <int rows>
SP_INLINE void multiply_block(const PanelProduct& p, const float* a, const float* b, float* c) {
  Float8 sums[rows][2];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2; ++j)
      sums[i][j] = p.accumulate ? load8(c + i * p.c_row + 8 * j) : Float8{};
  for (std::int64_t k = 0; k < p.inner; ++k, a += p.a_inner, b += panel_columns) {
    const Float8 first = load8(b), second = load8(b + 8);
    for (int i = 0; i < rows; ++i) {
      const float factor = a[i * p.a_row];
      sums[i][0] += factor * first;
      sums[i][1] += factor * second;
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2; ++j) store(c + i * p.c_row + 8 * j, sums[i][j]);
}

SP_INLINE void multiply_rest(const PanelProduct& p, std::int64_t rows, const float* a,
                             const float* b, float* c) {
  switch (rows) {
    case 1: return multiply_block<1>(p, a, b, c);
    case 2: return multiply_block<2>(p, a, b, c);
    case 3: return multiply_block<3>(p, a, b, c);
    case 4: return multiply_block<4>(p, a, b, c);
    case 5: return multiply_block<5>(p, a, b, c);
    default: return;
  }
}

}  // namespace

SP_CLONES void multiply(const PanelProduct& p) {
  for (std::int64_t column = 0; column < p.columns; column += panel_columns) {
    const float* const panel = p.b + column * p.inner;
    std::int64_t row = 0;
    for (; row + block_rows <= p.rows; row += block_rows)
      multiply_block<block_rows>(p, p.a + row * p.a_row, panel, p.c + row * p.c_row + column);
    multiply_rest(p, p.rows - row, p.a + row * p.a_row, panel, p.c + row * p.c_row + column);
  }
}

}  // namespace stratplan::cpu
