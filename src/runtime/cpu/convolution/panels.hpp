#pragma once
// A product of small matrices whose right operand the caller has packed. The product makes no
// copies and selects no implementation per call, because a convolution computes dozens of such
// products.
#include <cstdint>

namespace stratplan::cpu {

constexpr std::int64_t panel_columns = 16;

/// The product a (rows x inner) * b (inner x columns). multiply() stores it in c (rows x columns),
/// or adds it to c if `accumulate`. Element (i, k) of a lies at a[i * a_row + k * a_inner]. b
/// consists of dense panels of inner x 16 elements, one after another. `columns` is a multiple of
/// 16. Row i of c begins at c + i * c_row.
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
