#pragma once
// Measures the arithmetic rate and the memory rate of one rank while all ranks are busy, and the
// time that the executor adds to each op. Kernels that were not measured are estimated from these
// rates.
#include <array>

#include "model/machine/machine_profile.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

struct DeviceProfile {
  double flops_per_s = 0;  ///< best rate of some large convolutions
  double bytes_per_s = 0;  ///< best rate of some copies
  /// by Math: best rate of the same convolutions on 16-bit numbers. It is 0 if the backend does not
  /// compute in that type or has no device of its own.
  std::array<double, math_count> math_flops_per_s{};
  double host_bytes_per_s = 0;  ///< of uploads; 0 if the backend has no device of its own
  Seconds launch{};             ///< time of a tiny kernel, taken as the least time of any kernel
  Measurement step_overhead;    ///< executor time per op, beyond the kernel's own time
};

/// Measures the values of a DeviceProfile. All ranks call this function and get the same result.
DeviceProfile profile_device(Backend& backend, const Team& team);

/// Writes the rates into a machine profile. The machine's memory becomes that of the backend's
/// device. If the backend has no device of its own, the machine's memory stays unchanged.
void describe_device(MachineProfile& machine, const DeviceProfile& profile, const Backend& backend);

}  // namespace stratplan
