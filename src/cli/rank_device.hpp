#pragma once
// What one rank computes with, and how what it computes with talks to that of the others: a processor by the job's communicator itself, a device by NCCL or by
// way of the host.
#include <memory>
#include <string>

#include "model/base/units.hpp"
#include "model/partition/program.hpp"
#include "runtime/backend.hpp"
#include "runtime/communicator.hpp"
#include "runtime/device_seats.hpp"
#include "runtime/executor.hpp"
#include "runtime/flight_recorder.hpp"

namespace stratplan {

struct DeviceRequest {
  std::string backend;                ///< as make_backend knows it
  std::string communicator = "auto";  ///< "nccl", "staged"; "auto": what fits the backend and the devices
  int communication_timeout = 300;    ///< seconds, of NCCL
  std::string cuda_graph = "auto";    ///< "on", "off": whether runs of steps are captured and replayed; "auto": if nobody wants the time of each
};

/// Throws UsageError: a communicator or a graph for devices that the backend has no use for. EnvironmentError: that was not built.
void check_devices(const DeviceRequest& request);

/// Has the executor replay its steps where the request says so and the backend can, and tells about it on one rank. `times_steps`: the time of each is wanted.
void replay_steps(const DeviceRequest& request, const Backend& backend, bool times_steps, Executor& executor, bool speaking);

/// Before ranks are started as processes of this machine: what those that share a device and talk by NCCL must find in their environment.
void prepare_launch(const DeviceRequest& request, int ranks);

class RankDevice {
 public:
  /// Called by all ranks; both must outlive this. Chooses this rank's device.
  RankDevice(const DeviceRequest& request, int threads, Communicator& host, FlightRecorder recorder);

  Backend& backend() { return *backend_; }
  /// For addresses of the backend; made by the first call, by all ranks together, for the collectives of `program`.
  Communicator& communicator(const Program& program);

 private:
  DeviceRequest request_;
  Communicator& host_;
  FlightRecorder recorder_;
  DeviceWay way_ = DeviceWay::Host;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> device_;    ///< none: the host's is used
  std::unique_ptr<Communicator> recorded_;  ///< of `device_`, where no communicator inside notes who waits
};

}  // namespace stratplan
