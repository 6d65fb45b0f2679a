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

/// Where a rank runs. Node and devices are hashes of names; they only serve to compare.
struct DeviceAssignment {
  std::int32_t node = 0;
  std::int32_t process = 0;  ///< process id on the node
  std::vector<std::int32_t>
      devices;  ///< devices that the process sees: all or some of the node's, in its own order
  friend bool operator==(const DeviceAssignment&, const DeviceAssignment&) = default;
};

/// Returns this process's entry; `devices` are the names of the devices that it sees.
DeviceAssignment this_assignment(const std::vector<std::string>& devices);
/// Returns the entries of all ranks, by rank. Called by all ranks.
std::vector<DeviceAssignment> gather_assignments(const DeviceAssignment& mine,
                                                 Communicator& communicator);

/// Returns, by rank, the index of its device among the devices that its process sees. The ranks of
/// a node take devices in turn. -1: the process sees none.
std::vector<int> choose_devices(const std::vector<DeviceAssignment>& assignments);
/// Whether two ranks work on one device.
bool share_devices(const std::vector<DeviceAssignment>& assignments);
bool on_one_node(const std::vector<DeviceAssignment>& assignments);

/// Returns the transport between devices for transfers whose transport the plan does not name. It
/// is `wanted` ("nccl", "mpi", "staged"). For "auto" it is "nccl" if each rank has its own device,
/// else "staged". Throws EnvironmentError for "nccl" if ranks share devices and are threads of one
/// process, which NCCL refuses.
std::string device_transport(const std::string& wanted,
                             const std::vector<DeviceAssignment>& assignments);

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Returns the environment variables that NCCL needs if processes share a device. With them NCCL
/// takes each process for a node of its own (NCCL_HOSTID) and uses sockets. It uses few and simple
/// kernels, because kernels of different processes take turns on a device. This is correct but
/// slow. `rank` -1: for the process that starts the ranks, all on its node.
Variables shared_device_environment(int rank, bool one_node);
/// Sets these variables. Those that are set already keep their values, except NCCL_HOSTID. Must be
/// called before any call of NCCL. CUDA reads CUDA_MODULE_LOADING when it starts, so the process
/// that starts the ranks must set it for them. Otherwise kernels that are loaded late can deadlock
/// with NCCL's kernels.
void prepare_shared_device(int rank, bool one_node);

}  // namespace stratplan
