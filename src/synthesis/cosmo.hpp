#pragma once
// Random universes to learn from: density fields whose spectrum's parameters are to be told from
// the field, the task of CosmoFlow (Mathuriya et al., SC'18) with a theory simple enough to
// generate from. A field is Gaussian, so its power spectrum says all about it:
//
//   P(k) ~ k^n / (1 + (k / k_eq)^2)^2  a primordial power law, bent at the scale k_eq of
//                                      matter-radiation equality
//
// scaled to a standard deviation of sigma today. Linear growth makes it smaller in the past,
// delta(a) = a^f delta(1), which the four channels show at the scale factors a = 1, 3/4, 1/2, 1/4
// (redshifts 0, 1/3, 1, 3). Lengths are in cells: a larger cube is more of the same universe.
//
//   target   parameter                                        uniform in
//   0        sigma, standard deviation of the density         0.5 .. 1.5
//   1        n, slope of the spectrum at large scales         0 .. 2
//   2        k_eq, where it bends, in cycles per cell         0.04 .. 0.2
//   3        f, growth                                        0.4 .. 1
//
// Targets are the parameters with their means taken off, divided by their standard deviations: who
// always answers 0 has a mean squared error of 1.
#include <array>
#include <cstdint>
#include <vector>

namespace stratplan {

struct CosmoFields {
  std::int64_t size = 64;  ///< cells along each side; a power of two
  std::uint64_t seed = 1;
};

inline constexpr std::int64_t cosmo_channels = 4;

struct Cosmology {
  double sigma = 1;
  double slope = 1;
  double bend = 0.1;
  double growth = 0.7;
  /// Up to a factor; `k` in cycles per cell.
  double power(double k) const;
  /// Mean 0 and variance 1 over all cosmologies.
  std::array<float, 4> targets() const;
};

struct CosmoSample {
  Cosmology cosmology;
  std::vector<float> field;  ///< [4][size][size][size]
};

/// A function of seed and index alone. Filters white noise in Fourier space.
CosmoSample cosmo_sample(const CosmoFields& fields, std::int64_t index);

}  // namespace stratplan
