#pragma once
// Random density fields as training data. A network predicts the parameters from which a field was
// generated. CosmoFlow (Mathuriya et al., SC'18) has this task too, but here the theory is simple
// enough to generate fields. A field is Gaussian, so its power spectrum describes it completely:
//
//   P(k) ~ k^n / (1 + (k / k_eq)^2)^2  a primordial power law, bent at the scale k_eq of
//                                      matter-radiation equality
//
// A field is scaled to a standard deviation of sigma today. Linear growth makes it smaller in the
// past: delta(a) = a^f delta(1). The four channels show the field at the scale factors a = 1, 3/4,
// 1/2, 1/4 (redshifts 0, 1/3, 1, 3). Lengths are in cells, so a larger cube shows more of the same
// universe.
//
//   target   parameter                                        uniform in
//   0        sigma, standard deviation of the density         0.5 .. 1.5
//   1        n, slope of the spectrum at large scales         0 .. 2
//   2        k_eq, bend of the spectrum, in cycles per cell   0.04 .. 0.2
//   3        f, exponent of the growth                        0.4 .. 1
//
// A target is a parameter minus the parameter's mean, divided by its standard deviation. So a
// network that always answers 0 has an expected mean squared error of 1.
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
  /// Returns the power at `k` cycles per cell, up to a constant factor.
  double power(double k) const;
  /// Returns the targets, which have mean 0 and variance 1 over all cosmologies.
  std::array<float, 4> targets() const;
};

struct CosmoSample {
  Cosmology cosmology;
  std::vector<float> field;  ///< [4][size][size][size]
};

/// Returns one sample, which depends on seed and index alone. The field is white noise, filtered in
/// Fourier space.
CosmoSample cosmo_sample(const CosmoFields& fields, std::int64_t index);

}  // namespace stratplan
