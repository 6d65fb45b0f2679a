#pragma once
// The discrete Fourier transform of a cube of values, for spectral synthesis. The implementation is
// simple: radix 2, one line of values at a time.
#include <complex>
#include <cstdint>
#include <span>

namespace stratplan {

enum class FourierDirection : int { Forward, Backward };

/// Transforms size x size x size values in place, along all three axes. Values are in row-major
/// order. Requires that `size` is a power of two. Forward computes the sum of f(x) exp(-2 pi i k x
/// / size). Backward has the other sign and divides by the number of values, so that it inverts
/// Forward.
void transform_cube(std::span<std::complex<double>> values, std::int64_t size,
                    FourierDirection direction);

}  // namespace stratplan
