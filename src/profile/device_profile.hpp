#pragma once
// Rates of one rank while all are busy, for estimates of what was not measured; and what the
// executor adds to each step.
#include <array>

#include "model/machine/machine_profile.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

struct DeviceProfile {
  double flops_per_s = 0;  ///< the best of some large convolutions
  double bytes_per_s = 0;  ///< the best of some copies
  /// by Math, the same products on numbers of 16 bits; 0: not on this backend, or no device of its
  /// own
  std::array<double, math_count> math_flops_per_s{};
  Seconds launch{};           ///< the least of kernels
  Measurement step_overhead;  ///< of the executor, beyond the kernel's own time
};

/// The same on all ranks.
DeviceProfile profile_device(Backend& backend, const Team& team);

/// Writes it into a machine's profile. Memory is the device's; where the host is the device, it
/// stays as it was.
void describe_device(MachineProfile& machine, const DeviceProfile& profile, const Backend& backend);

}  // namespace stratplan
