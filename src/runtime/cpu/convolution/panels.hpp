#pragma once
// A product of small matrices whose right operand was packed by the caller. It makes no copies and
// has no dispatch, because a convolution computes dozens of such products.
#include <cstdint>

namespace stratplan::cpu {

constexpr std::int64_t panel_columns = 16;

/// c (rows x columns) = a (rows x inner) * b (inner x columns), added to c if `accumulate`. Element
/// (i, k) of a lies at i * a_row + k * a_inner. b lies in panels of 16 columns, each inner x 16 and
/// dense, one behind the other; columns are a multiple of 16. Row i of c lies at i * c_row.
struct PanelProduct {
  const float* a;
  std::int64_t a_row, a_inner;
  const float* b;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, columns, inner;
  bool accumulate;
};
void multiply(const PanelProduct& product);

}  // namespace stratplan::cpu
