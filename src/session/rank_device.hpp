#pragma once
// What one rank computes with, and how what it computes with talks to that of the others: a
// processor by the job's communicator itself, a device by NCCL, by an MPI that takes its addresses,
// or by way of the host.
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
  std::string backend;  ///< as make_backend knows it
  /// "nccl", "mpi", "staged": for all transfers; "auto": as the plan says, and what fits the
  /// devices where it does not
  std::string communicator = "auto";
  int communication_timeout = 300;  ///< seconds, of NCCL
  /// "off": each step is launched; "on", "auto": runs of steps are captured and replayed, where the
  /// backend can
  std::string cuda_graph = "auto";
};

/// Throws UsageError: a communicator or a graph for devices that the backend has no use for.
/// EnvironmentError: that was not built.
void check_devices(const DeviceRequest& request);

/// How many iterations tell the time of each step, where those that are timed replay them.
inline constexpr int launched_iterations = 5;

/// Has the executor replay its steps where the request says so and the backend can. `times_steps`:
/// the time of each is wanted.
void replay_steps(const DeviceRequest& request, const Backend& backend, bool times_steps,
                  Executor& executor, Log& log);

/// Before ranks are started as processes of this machine: what those that share a device and talk
/// by NCCL must find in their environment.
void prepare_launch(const DeviceRequest& request, int ranks);

class RankDevice {
 public:
  /// Called by all ranks; host and log must outlive this. Chooses this rank's device.
  RankDevice(const DeviceRequest& request, int threads, Communicator& host, FlightRecorder recorder,
             Log& log);

  Backend& backend() { return *backend_; }
  /// For addresses of the backend, along the ways that `program` goes; made by the first call, by
  /// all ranks together, for its collectives.
  Communicator& communicator(const Program& program);
  /// All ways that there are between the ranks' devices, the one that is taken without a plan
  /// first; a single one without a name between processors. Called by all ranks. `groups`: of the
  /// collectives to come.
  std::vector<Transport> transports(const std::vector<CollectiveGroup>& groups);
  /// Whether several ranks work on one device: what is measured then says nothing of others.
  bool shared() const { return shared_; }

 private:
  void choose_device();
  Communicator& make_transport(const std::string& name, const std::vector<CollectiveGroup>& groups);

  DeviceRequest request_;
  Communicator& host_;
  FlightRecorder recorder_;
  Log& log_;
  std::string first_transport_;  ///< between devices; empty: there are none
  bool shared_ = false;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Communicator>> made_;  ///< what a decorator decorates before it
  std::map<std::string, Communicator*> by_name_;     ///< into those
  std::unique_ptr<TransportsCommunicator> chosen_;   ///< by the plan
};

}  // namespace stratplan
