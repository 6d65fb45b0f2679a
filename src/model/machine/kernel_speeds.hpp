#pragma once
// How long measured kernels take relative to their estimates, by family, direction and whether they
// compute in 16 bits. Estimates of
// kernels that were not measured are corrected by what was measured of their family on the same
// machine. So a few kernels of each family are enough for a first plan.
#include <array>
#include <optional>

#include "model/base/json/json_fwd.hpp"
#include "model/base/units.hpp"
#include "model/machine/kernel_family.hpp"

namespace stratplan {

/// Logarithms of measured / estimated times.
struct SpeedSamples {
  int kernels = 0;
  double mean = 0;
  double squares = 0;  ///< sum of the squared differences from `mean`

  void add(double logarithm);
  void add(const SpeedSamples& more);
  /// The mean square of the differences from `mean`, as if `more_kernels` more kernels had differed
  /// by `deviation` each.
  double variance(int more_kernels, double deviation) const;
  friend bool operator==(const SpeedSamples&, const SpeedSamples&) = default;
};

class KernelSpeeds {
 public:
  /// Ignores kernels whose time is not positive.
  void add(const Kernel& kernel, Seconds measured, Seconds estimated);

  struct Correction {
    double factor = 1;     ///< on the estimate
    double deviation = 0;  ///< standard deviation of ln(measured / corrected estimate)
  };
  /// The correction of a kernel's estimate. It rests on measured kernels of the same family and
  /// direction, else on those of the same family, else on all contractions or on all other kernels,
  /// always of the same width. Nothing if none of those was measured.
  std::optional<Correction> correction(const Kernel& kernel) const;
  /// The number of kernels of this kernel's family and direction.
  int measured_like(const Kernel& kernel) const;
  bool empty() const;

  friend Json to_json(const KernelSpeeds& speeds);
  friend KernelSpeeds kernel_speeds_from(const Json& json);
  friend bool operator==(const KernelSpeeds&, const KernelSpeeds&) = default;

 private:
  using Directions = std::array<SpeedSamples, direction_count>;
  using Families = std::array<Directions, kernel_family_count>;
  std::array<Families, 2> samples_{};  ///< of 32 bits, of 16 bits
};

/// By width ("32 bits", "16 bits"), name of family and name of direction. What has no kernels is
/// left out.
Json to_json(const KernelSpeeds& speeds);
KernelSpeeds kernel_speeds_from(const Json& json);

}  // namespace stratplan
