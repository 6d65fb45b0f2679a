#pragma once
// Which device of its node each rank works on, and how ranks on devices talk.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Where a rank runs. Nodes, processes and devices are told apart by numbers that mean nothing
/// else.
struct DeviceAssignment {
  std::int32_t node = 0;
  std::int32_t process = 0;  ///< on its node
  std::vector<std::int32_t>
      devices;  ///< that its process sees: those of the node, or some of them, in its own order
  friend bool operator==(const DeviceAssignment&, const DeviceAssignment&) = default;
};

/// This process on this machine, with devices of these names.
DeviceAssignment this_assignment(const std::vector<std::string>& devices);
/// Everybody's, by rank. Called by all ranks.
std::vector<DeviceAssignment> gather_assignments(const DeviceAssignment& mine,
                                                 Communicator& communicator);

/// By rank, its place among those that its process sees: the ranks of a node take them in turn. -1:
/// it sees none.
std::vector<int> choose_devices(const std::vector<DeviceAssignment>& assignments);
/// Whether two ranks work on one device.
bool share_devices(const std::vector<DeviceAssignment>& assignments);
bool on_one_node(const std::vector<DeviceAssignment>& assignments);

/// How transfers between devices go that the plan says nothing of: as `wanted` ("nccl", "mpi",
/// "staged"), or, if that is "auto", by NCCL if each rank has a device of its own, else staged.
/// Throws EnvironmentError if NCCL is wanted by threads of one process that share a device, which
/// it refuses.
std::string device_transport(const std::string& wanted,
                             const std::vector<DeviceAssignment>& assignments);

using Variables = std::vector<std::pair<std::string, std::string>>;

/// What NCCL must find in its environment where processes share a device: it takes each for a node
/// of its own (NCCL_HOSTID) that it reaches by sockets, with few and plain kernels, for those of
/// different processes take turns. Correct, and slow. `rank` -1: of the process that starts the
/// ranks, all on its node.
Variables shared_device_environment(int rank, bool one_node);
/// Sets what is not set yet, and NCCL_HOSTID. To be called before anything of NCCL is;
/// CUDA_MODULE_LOADING is read when CUDA starts, so that the process that starts the ranks must
/// have set it for them: without it kernels that are loaded late may wait for kernels of NCCL's
/// that wait for them.
void prepare_shared_device(int rank, bool one_node);

}  // namespace stratplan
