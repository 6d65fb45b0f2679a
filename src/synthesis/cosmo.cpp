#include "synthesis/cosmo.hpp"

#include <cmath>

#include "model/base/philox.hpp"
#include "synthesis/fourier.hpp"

namespace stratplan {
namespace {

struct Range {
  double low, high;
  double at(double fraction) const { return low + fraction * (high - low); }
  /// Scales a value that is uniform in the range to mean 0 and variance 1.
  float normalized(double value) const {
    return static_cast<float>((value - (low + high) / 2) / ((high - low) / std::sqrt(12.0)));
  }
};

constexpr Range sigma_range{0.5, 1.5}, slope_range{0, 2}, bend_range{0.04, 0.2},
    growth_range{0.4, 1};
constexpr std::array<double, cosmo_channels> scale_factors{1, 0.75, 0.5, 0.25};

Cosmology draw(const RandomStream& stream) {
  return {sigma_range.at(stream.uniform(0)), slope_range.at(stream.uniform(1)),
          bend_range.at(stream.uniform(2)), growth_range.at(stream.uniform(3))};
}

/// Returns the signed frequency of the Fourier mode with index `i` along one axis, in cycles per
/// cell. `size`: the number of cells along the axis.
double frequency(std::int64_t i, std::int64_t size) {
  return static_cast<double>(i <= size / 2 ? i : i - size) / static_cast<double>(size);
}

/// Multiplies each mode by the square root of its power, and by one common factor. The field then
/// has mean 0 and variance sigma^2, averaged over all realizations of the noise.
void shape_spectrum(std::vector<std::complex<double>>& modes, std::int64_t size,
                    const Cosmology& cosmology) {
  double total = 0;
  auto mode = modes.begin();
  for (std::int64_t x = 0; x < size; ++x)
    for (std::int64_t y = 0; y < size; ++y)
      for (std::int64_t z = 0; z < size; ++z, ++mode) {
        const double power =
            cosmology.power(std::hypot(frequency(x, size), frequency(y, size), frequency(z, size)));
        total += power;
        *mode *= std::sqrt(power);
      }
  const double scale = cosmology.sigma / std::sqrt(total / static_cast<double>(modes.size()));
  for (auto& value : modes) value *= scale;
}

}  // namespace

double Cosmology::power(double k) const {
  if (k <= 0) return 0;
  const double transfer = 1 / (1 + (k / bend) * (k / bend));
  return std::pow(k, slope) * transfer * transfer;
}

std::array<float, 4> Cosmology::targets() const {
  return {sigma_range.normalized(sigma), slope_range.normalized(slope), bend_range.normalized(bend),
          growth_range.normalized(growth)};
}

CosmoSample cosmo_sample(const CosmoFields& fields, std::int64_t index) {
  CosmoSample sample{draw(RandomStream(fields.seed, "cosmo.parameters", index)), {}};
  const RandomStream noise(fields.seed, "cosmo.noise", index);
  const auto cells = static_cast<std::size_t>(fields.size * fields.size * fields.size);
  std::vector<std::complex<double>> density(cells);
  for (std::size_t i = 0; i < cells; ++i) density[i] = noise.normal(i);
  transform_cube(density, fields.size, FourierDirection::Forward);
  shape_spectrum(density, fields.size, sample.cosmology);
  transform_cube(density, fields.size, FourierDirection::Backward);
  sample.field.reserve(cells * scale_factors.size());
  for (const double a : scale_factors) {
    const double grown = std::pow(a, sample.cosmology.growth);
    for (const auto& value : density)
      sample.field.push_back(static_cast<float>(grown * value.real()));
  }
  return sample;
}

}  // namespace stratplan
