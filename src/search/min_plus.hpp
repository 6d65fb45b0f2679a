#pragma once
// Min-plus products of tables: sums take the place of products, and minima that of sums.
// Elimination spends its time here.
#include <cstddef>
#include <span>

namespace stratplan {

/// out[r * size + i] = least of constants[k * height + r] + rows[k][i] over all k, for each r <
/// height and i < size. `height` is out.size() / size. Uses all cores.
void min_plus(std::span<const double> constants, std::span<const double* const> rows,
              std::size_t size, std::span<double> out);

}  // namespace stratplan
