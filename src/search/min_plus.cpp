#include "search/min_plus.hpp"

#include <algorithm>
#include <cstring>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"
#include "search/numbers.hpp"

namespace stratplan {
namespace {

struct Product {
  const double* constants;
  std::size_t height;
  std::span<const double* const> rows;
  std::size_t size;
  double* out;
};

/// One row of the result.
void row_of(const Product& product, std::size_t r) {
  double* out = product.out + r * product.size;
  std::fill(out, out + product.size, infinity);
  for (std::size_t k = 0; k < product.rows.size(); ++k) {
    const double constant = product.constants[k * product.height + r];
    const double* row = product.rows[k];
    for (std::size_t i = 0; i < product.size; ++i) out[i] = std::min(out[i], constant + row[i]);
  }
}

/// Entries of `out` that stay in registers while all rows pass.
constexpr std::size_t tile_rows = 4, lanes = 4, vectors = 2, tile_columns = lanes * vectors;

#if defined(__x86_64__)
using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

__attribute__((target("avx2"))) void tile(const Product& product, std::size_t r,
                                          std::size_t column) {
  const std::size_t count = product.rows.size();
  const double* constants = product.constants + r;
  Lanes least[tile_rows][vectors];
#pragma GCC unroll 8
  for (auto& row : least)
#pragma GCC unroll 8
    for (Lanes& entries : row) entries = Lanes{} + infinity;
  for (std::size_t k = 0; k < count; ++k) {
    const double* row = product.rows[k] + column;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) {
      Lanes entries;
      std::memcpy(&entries, row + lanes * v, sizeof entries);  // an unaligned load
#pragma GCC unroll 8
      for (std::size_t i = 0; i < tile_rows; ++i) {
        const Lanes sums = entries + constants[k * product.height + i];
        least[i][v] = sums < least[i][v] ? sums : least[i][v];
      }
    }
  }
  double* out = product.out + r * product.size + column;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v)
      std::memcpy(out + i * product.size + lanes * v, &least[i][v], sizeof least[i][v]);
}

bool has_tiles() { return __builtin_cpu_supports("avx2"); }
#else
void tile(const Product&, std::size_t, std::size_t) {}
bool has_tiles() { return false; }
#endif

}  // namespace

void min_plus(std::span<const double> constants, std::span<const double* const> rows,
              std::size_t size, std::span<double> out) {
  const std::size_t count = out.size() / size;
  SP_ASSERT(constants.size() == count * rows.size(), "constants={} out={} rows={} size={}",
            constants.size(), out.size(), rows.size(), size);
  const Product product{constants.data(), count, rows, size, out.data()};
  static const bool has = has_tiles();
  const auto fill = [&](std::size_t first, std::size_t last) {
    if (!has || last - first < tile_rows || size < tile_columns) {
      for (std::size_t r = first; r < last; ++r) row_of(product, r);
      return;
    }
    // A column of tiles reads the same part of all rows, which then stays in the first cache. The
    // last tiles overlap those before them.
    for (std::size_t column = 0; column < size; column += tile_columns)
      for (std::size_t r = first; r < last; r += tile_rows)
        tile(product, std::min(r, last - tile_rows), std::min(column, size - tile_columns));
  };
  constexpr std::size_t worth_threads = 4'000'000;  // sums; they take a third of a millisecond
  constexpr std::size_t piece = 16 * tile_rows;
  if (out.size() * rows.size() < worth_threads) return fill(0, count);
  in_parallel((count + piece - 1) / piece,
              [&](std::size_t i) { fill(i * piece, std::min(count, (i + 1) * piece)); });
}

}  // namespace stratplan
