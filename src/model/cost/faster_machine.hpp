#pragma once
// A machine with one resource improved, to predict how much time the improvement would save.
#include <string_view>
#include <vector>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// The resources that ops spend time on. Launches covers the least time of a kernel and the host's
/// time to issue an op. Latency and Bandwidth are those of links.
enum class Resource : int { Compute, MemoryBandwidth, Launches, Latency, Bandwidth };
inline constexpr int resource_count = static_cast<int>(Resource::Bandwidth) + 1;
/// Returns for example "memory bandwidth".
std::string_view name_of(Resource resource);

/// Returns `machine` with one resource that is `factor` times as fast. Measured kernels of
/// `programs` become faster by the same ratio as their estimates. In measured messages and
/// collectives, the time of the smallest size counts as latency, and the remaining time depends on
/// the bandwidth.
MachineProfile faster(const MachineProfile& machine, Resource resource, double factor,
                      const std::vector<Program>& programs);

/// The resource that bounds the kernel's estimate on this device, apart from the launch: Compute or
/// MemoryBandwidth.
Resource bound_of(const Kernel& kernel, const DeviceRates& device);

}  // namespace stratplan
