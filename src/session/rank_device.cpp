#include "session/rank_device.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/base/error.hpp"
#include "runtime/comm/direct.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/nccl.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/comm/recording.hpp"
#include "runtime/comm/staged.hpp"

namespace stratplan {
void check_devices(const DeviceRequest& request) {
  if (request.communicator != "auto" && !is_cuda(request.backend))
    throw UsageError(fmt::format(
        "--communicator {} is for the memory of devices, so it needs --backend cuda instead of {}",
        request.communicator, request.backend));
  if (request.cuda_graph == "on" && !is_cuda(request.backend))
    throw UsageError(
        fmt::format("--cuda-graph on needs --backend cuda instead of {}", request.backend));
}

void replay_ops(const DeviceRequest& request, const Backend& backend, bool times_ops,
                Executor& executor, Log& log) {
  if (!backend.captures() || request.cuda_graph == "off") return;
  executor.replay_ops();
  const ReplayCount count = executor.replay_count();
  if (count.segments == 0)
    log.note("no CUDA graph is used, because the host moves data after every kernel");
  else if (count.ops == count.all_ops)
    log.note(fmt::format("from the second iteration on, one CUDA graph of {} ops is replayed",
                         count.ops));
  else
    log.note(
        fmt::format("from the second iteration on, {} of {} ops are replayed in {} CUDA graphs, "
                    "between which the host moves data",
                    count.ops, count.all_ops, count.segments));
  if (times_ops && count.segments > 0)
    log.note(fmt::format(
        "op times will come from {} more iterations, in which each op is launched on its own",
        launched_iterations));
}

void prepare_launch(const DeviceRequest& request, int ranks) {
  if (is_cuda(request.backend) && request.communicator == "nccl" &&
      ranks > std::ssize(cuda_devices()))
    prepare_shared_device(-1, true);
}

namespace {

/// Whether the job's own communicator accepts device addresses. False without MPI; nothing if the
/// MPI library does not say.
std::optional<bool> host_takes_device_memory() {
  if (!launched_by_mpi() || launched_by_processes()) return false;
  return mpi_takes_device_memory();
}

}  // namespace

RankDevice::RankDevice(const DeviceRequest& request, int threads, Communicator& host,
                       FlightRecorder recorder, Log& log)
    : request_(request), host_(host), recorder_(std::move(recorder)), log_(log) {
  if (is_cuda(request.backend)) choose_device();
  backend_ = make_backend(request.backend, threads);
}

/// Chooses this rank's device and transport, and sets the environment of ranks that share a device.
/// Called before anything is made on the device.
void RankDevice::choose_device() {
  const std::vector<DeviceAssignment> assignments =
      gather_assignments(this_assignment(cuda_devices()), host_);
  const int device = choose_devices(assignments)[static_cast<std::size_t>(host_.rank())];
  if (device < 0) return;  // make_backend() will report what is missing
  first_transport_ = device_transport(request_.communicator, assignments);
  shared_ = share_devices(assignments);
  if (shared_)
    log_.note("ranks share devices, so timings do not hold for ranks with devices of their own");
  if (shared_ && first_transport_ == "nccl")
    prepare_shared_device(host_.rank(), on_one_node(assignments));
  use_cuda_device(device);
}

Communicator& RankDevice::make_transport(const std::string& name,
                                         const std::vector<CollectiveGroup>& groups) {
  if (const auto known = by_name_.find(name); known != by_name_.end()) return *known->second;
  if (name == "nccl") {
    const NcclOptions options{.timeout = {static_cast<double>(request_.communication_timeout)}};
    made_.push_back(make_nccl_communicator(host_, *backend_, groups, options));
    made_.push_back(std::make_unique<RecordingCommunicator>(
        *made_.back(), recorder_));  // NCCL's communicator does not record waiting
  } else if (name == "mpi") {
    if (!host_takes_device_memory().value_or(true))
      throw EnvironmentError(
          "--communicator mpi needs an MPI that accepts device addresses, which these ranks do not "
          "have; use nccl or staged");
    made_.push_back(std::make_unique<DirectCommunicator>(host_, *backend_));
  } else if (name == "staged") {
    made_.push_back(std::make_unique<StagedCommunicator>(host_, *backend_));
  } else {
    throw EnvironmentError(
        fmt::format("the plan uses the transport {}; expected nccl, mpi or staged", name));
  }
  return *(by_name_[name] = made_.back().get());
}

Communicator& RankDevice::communicator(const Program& program) {
  if (first_transport_.empty() || host_.size() == 1) return host_;
  const std::vector<CollectiveGroup> groups = groups_of(program);
  Communicator& first = make_transport(first_transport_, groups);
  if (program.transports.size() == 1) return first;
  if (request_.communicator != "auto" || shared_) {
    log_.note(fmt::format("the plan's choice of transports is ignored; all transfers use {}",
                          first_transport_));
    return first;
  }
  chosen_ = std::make_unique<TransportsCommunicator>(first);
  for (const std::string& name : program.transports)
    if (!name.empty()) chosen_->add(name, make_transport(name, groups));
  return *chosen_;
}

std::vector<Transport> RankDevice::transports(const std::vector<CollectiveGroup>& groups) {
  if (first_transport_.empty() || host_.size() == 1) return {{"", host_}};
  std::vector<Transport> all{{first_transport_, make_transport(first_transport_, groups)}};
  if (first_transport_ != "staged") all.push_back({"staged", make_transport("staged", groups)});
  if (first_transport_ != "mpi" && host_takes_device_memory().value_or(false))
    all.push_back({"mpi", make_transport("mpi", groups)});
  return all;
}

}  // namespace stratplan
