#pragma once
// The device of one rank, and the communicator between the ranks' devices. Ranks on CPUs use the
// job's own communicator. Ranks on GPUs use NCCL, an MPI that accepts device addresses, or copies
// through host memory.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "model/base/units.hpp"
#include "model/partition/program/program.hpp"
#include "profile/measure/team.hpp"
#include "runtime/comm/transports.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/collective_groups.hpp"
#include "runtime/device/communicator.hpp"
#include "runtime/device/device_assignment.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

struct DeviceRequest {
  std::string backend;  ///< a name that make_backend() knows
  /// "nccl", "mpi" or "staged": the transport of all transfers; "auto": the transports of the plan,
  /// or the one that suits the devices if the plan names none
  std::string communicator = "auto";
  int communication_timeout = 300;  ///< seconds, for NCCL
  /// "off": each op is launched on its own; "on" or "auto": sequences of ops are captured and
  /// replayed as CUDA graphs, if the backend can
  std::string cuda_graph = "auto";
};

/// Throws UsageError if the request asks for a transport between devices, or for CUDA graphs, and
/// the backend is not cuda.
void check_devices(const DeviceRequest& request);

/// The number of additional iterations that measure the time of each op, if the timed iterations
/// replay graphs.
inline constexpr int launched_iterations = 5;

/// Lets the executor replay its ops as CUDA graphs if the request allows it and the backend can.
/// Logs how many ops are replayed. `times_ops`: the time of each op is wanted.
void replay_ops(const DeviceRequest& request, const Backend& backend, bool times_ops,
                Executor& executor, Log& log);

/// Sets the environment of ranks that will share a device and communicate by NCCL. To be called
/// before ranks are started as processes of this machine.
void prepare_launch(const DeviceRequest& request, int ranks);

class RankDevice {
 public:
  /// Chooses this rank's device and makes its backend. Called by all ranks. `host` and `log` must
  /// outlive this object.
  RankDevice(const DeviceRequest& request, int threads, Communicator& host, FlightRecorder recorder,
             Log& log);

  Backend& backend() { return *backend_; }
  /// Returns the communicator for the backend's memory, with the transports of `program`. The first
  /// call makes the communicator, for the collectives of `program`. Called by all ranks.
  Communicator& communicator(const Program& program);
  /// Returns all transports between the ranks' devices. The transport that is used if a plan names
  /// none comes first. Ranks on CPUs have a single transport without a name. Called by all ranks.
  /// `groups`: the groups of ranks that collectives will use.
  std::vector<Transport> transports(const std::vector<CollectiveGroup>& groups);
  /// Whether several ranks share a device. Measurements then do not hold for ranks with devices of
  /// their own.
  bool shared() const { return shared_; }

 private:
  void choose_device();
  Communicator& make_transport(const std::string& name, const std::vector<CollectiveGroup>& groups);

  DeviceRequest request_;
  Communicator& host_;
  FlightRecorder recorder_;
  Log& log_;
  std::string first_transport_;  ///< used if the plan names none; empty: ranks on CPUs
  bool shared_ = false;
  std::unique_ptr<Backend> backend_;
  /// all communicators; a decorator stands after the communicator that it decorates
  std::vector<std::unique_ptr<Communicator>> made_;
  std::map<std::string, Communicator*> by_name_;    ///< pointers into made_
  std::unique_ptr<TransportsCommunicator> chosen_;  ///< the transports of the plan
};

}  // namespace stratplan
