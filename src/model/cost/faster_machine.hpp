#pragma once
// The same machine with one thing improved, to see what that would be worth.
#include <string_view>
#include <vector>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// What a step of a program spends its time on. Launches: the least time of a kernel, and the
/// host's time to issue a step.
enum class Resource : int { Compute, MemoryBandwidth, Launches, Latency, Bandwidth };
inline constexpr int resource_count = static_cast<int>(Resource::Bandwidth) + 1;
/// "compute", "memory bandwidth", ...
std::string_view name_of(Resource resource);

/// `machine` with `factor` times as much of a resource. Measured kernels of `programs` become
/// faster by what their estimates do; of measured messages and collectives, the time of the
/// smallest counts as latency and the rest as bandwidth.
MachineProfile faster(const MachineProfile& machine, Resource resource, double factor,
                      const std::vector<Program>& programs);

/// What decides how long a kernel takes on this device beyond its launch, by its estimate: Compute
/// or MemoryBandwidth.
Resource bound_of(const Kernel& kernel, const DeviceRates& device);

}  // namespace stratplan
