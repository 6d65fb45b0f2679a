#pragma once
// The device assignment: which device of its node each rank works on, and the transport between
// devices.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Where a rank runs. Node and devices are hashes of names, and serve only for comparisons.
struct DeviceAssignment {
  std::int32_t node = 0;
  std::int32_t process = 0;  ///< process id on the node
  /// the devices of the node that the process sees, in the order in which the process sees them
  std::vector<std::int32_t> devices;
  friend bool operator==(const DeviceAssignment&, const DeviceAssignment&) = default;
};

/// Returns this process's assignment; `devices` are the names of the devices that the process sees.
DeviceAssignment this_assignment(const std::vector<std::string>& devices);
/// Returns the assignments of all ranks, by rank. Called by all ranks.
std::vector<DeviceAssignment> gather_assignments(const DeviceAssignment& mine,
                                                 Communicator& communicator);

/// Returns, by rank, the index of the rank's device among the devices that its process sees. The
/// ranks of a node take devices in turn. The index is -1 if the process sees no device.
std::vector<int> choose_devices(const std::vector<DeviceAssignment>& assignments);
/// Whether two ranks work on one device.
bool share_devices(const std::vector<DeviceAssignment>& assignments);
bool on_one_node(const std::vector<DeviceAssignment>& assignments);

/// Returns the transport between devices for transfers whose transport the plan does not name. If
/// `wanted` is "nccl", "mpi" or "staged", the result is `wanted`. If `wanted` is "auto", the result
/// is "staged" if ranks share devices, else "nccl". Throws EnvironmentError for "nccl" if ranks
/// share devices and two ranks are threads of one process, which NCCL refuses.
std::string device_transport(const std::string& wanted,
                             const std::vector<DeviceAssignment>& assignments);

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Returns the environment variables that NCCL needs if processes share a device. With them NCCL
/// takes each process for a node of its own (NCCL_HOSTID) and uses sockets. NCCL then uses few and
/// simple kernels, because kernels of different processes take turns on a device. This is correct
/// but slow. `rank` is -1 in a process that starts all ranks on its own node. `one_node` says
/// whether all ranks are on one node.
Variables shared_device_environment(int rank, bool one_node);
/// Sets the variables of shared_device_environment(). Variables that are set already keep their
/// values, except NCCL_HOSTID. Must be called before any call of NCCL. CUDA reads
/// CUDA_MODULE_LOADING when CUDA starts, so the process that starts the ranks must set this
/// variable for them. Otherwise kernels that are loaded late can deadlock with NCCL's kernels.
void prepare_shared_device(int rank, bool one_node);

}  // namespace stratplan
