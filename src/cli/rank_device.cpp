#include "cli/rank_device.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/console.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/nccl.hpp"
#include "runtime/comm/recording.hpp"
#include "runtime/comm/staged.hpp"

namespace stratplan {
namespace {

/// The device of this rank, and how it talks; environment and device are set before anything is made on them.
DeviceWay choose_device(const DeviceRequest& request, Communicator& host) {
  if (!is_cuda(request.backend)) return DeviceWay::Host;
  const std::vector<Seat> seats = gather_seats(this_seat(cuda_devices()), host);
  const int device = choose_devices(seats)[static_cast<std::size_t>(host.rank())];
  if (device < 0) return DeviceWay::Staged;  // make_backend says what is missing
  const DeviceWay way = device_way(request.communicator, seats);
  if (share_devices(seats)) {
    if (host.rank() == 0) note("ranks share devices: good for verification, not for timing");
    if (way == DeviceWay::Nccl) prepare_shared_device(host.rank(), on_one_node(seats));
  }
  use_cuda_device(device);
  return way;
}

}  // namespace

void check_devices(const DeviceRequest& request) {
  if (request.communicator != "auto" && !is_cuda(request.backend))
    throw UsageError(
        fmt::format("--communicator {} is for the memory of devices: it needs --backend cuda, not {}", request.communicator, request.backend));
  if (request.cuda_graph == "on" && !is_cuda(request.backend))
    throw UsageError(fmt::format("--cuda-graph on needs --backend cuda, not {}", request.backend));
}

void replay_steps(const DeviceRequest& request, const Backend& backend, bool times_steps, Executor& executor, bool speaking) {
  if (!backend.captures() || request.cuda_graph == "off") return;
  if (request.cuda_graph == "auto" && times_steps) {
    if (speaking) note("no CUDA graph: the time of each step is wanted, so each is launched on its own (--cuda-graph on does without)");
    return;
  }
  executor.replay_steps();
  if (!speaking) return;
  const ReplayCount count = executor.replay_count();
  if (count.segments == 0)
    note("no CUDA graph: the host moves data between any two kernels");
  else if (count.steps == count.all_steps)
    note(fmt::format("from the second iteration on, one CUDA graph of {} steps is replayed", count.steps));
  else
    note(fmt::format("from the second iteration on, {} of {} steps are replayed in {} CUDA graphs, between which the host moves data", count.steps,
                     count.all_steps, count.segments));
}

void prepare_launch(const DeviceRequest& request, int ranks) {
  if (is_cuda(request.backend) && request.communicator == "nccl" && ranks > std::ssize(cuda_devices())) prepare_shared_device(-1, true);
}

RankDevice::RankDevice(const DeviceRequest& request, int threads, Communicator& host, FlightRecorder recorder)
    : request_(request),
      host_(host),
      recorder_(std::move(recorder)),
      way_(choose_device(request, host)),
      backend_(make_backend(request.backend, threads)) {}

Communicator& RankDevice::communicator(const Program& program) {
  if (way_ == DeviceWay::Host || host_.size() == 1) return host_;
  if (way_ == DeviceWay::Staged && !device_) device_ = std::make_unique<StagedCommunicator>(host_, *backend_);
  if (way_ == DeviceWay::Nccl && !device_) {
    const NcclOptions options{.timeout = {static_cast<double>(request_.communication_timeout)}};
    device_ = make_nccl_communicator(host_, *backend_, groups_of(program), options);
    recorded_ = std::make_unique<RecordingCommunicator>(*device_, recorder_);
  }
  return recorded_ ? *recorded_ : *device_;
}

}  // namespace stratplan
