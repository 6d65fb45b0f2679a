#include "synthesis/fourier.hpp"

#include <bit>
#include <numbers>
#include <utility>
#include <vector>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

using Complex = std::complex<double>;

/// Returns exp(sign 2 pi i k / size) for k below size / 2.
std::vector<Complex> roots_of_unity(std::size_t size, double sign) {
  std::vector<Complex> roots;
  for (std::size_t k = 0; k < size / 2; ++k)
    roots.push_back(std::polar(
        1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size)));
  return roots;
}

/// Moves each value to its bit-reversed index, where the butterflies expect it.
void reverse_bits(std::span<Complex> line) {
  for (std::size_t i = 1, j = 0; i < line.size(); ++i) {
    std::size_t bit = line.size() / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(line[i], line[j]);
  }
}

/// Transforms one line in place (Cooley and Tukey, "An algorithm for the machine calculation of
/// complex Fourier series", 1965).
void transform_line(std::span<Complex> line, const std::vector<Complex>& roots) {
  reverse_bits(line);
  for (std::size_t half = 1; half < line.size(); half *= 2)
    for (std::size_t begin = 0; begin < line.size(); begin += 2 * half)
      for (std::size_t k = 0; k < half; ++k) {
        const Complex turned = line[begin + half + k] * roots[k * (line.size() / (2 * half))];
        line[begin + half + k] = line[begin + k] - turned;
        line[begin + k] += turned;
      }
}

}  // namespace

void transform_cube(std::span<std::complex<double>> values, std::int64_t size,
                    FourierDirection direction) {
  const auto n = static_cast<std::size_t>(size);
  SP_ASSERT(std::has_single_bit(n) && values.size() == n * n * n,
            "expected a cube whose side is a power of two, found {} values and side {}",
            values.size(), size);
  const std::vector<Complex> roots =
      roots_of_unity(n, direction == FourierDirection::Forward ? -1 : 1);
  std::vector<Complex> line(n);
  for (const std::size_t stride : {std::size_t{1}, n, n * n})
    for (std::size_t i = 0; i < n * n; ++i) {
      Complex* first = values.data() + i / stride * stride * n + i % stride;
      for (std::size_t k = 0; k < n; ++k) line[k] = first[k * stride];
      transform_line(line, roots);
      for (std::size_t k = 0; k < n; ++k) first[k * stride] = line[k];
    }
  if (direction == FourierDirection::Backward)
    for (Complex& value : values) value /= static_cast<double>(values.size());
}

}  // namespace stratplan
