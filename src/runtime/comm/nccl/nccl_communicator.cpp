// The communicator over NCCL. Messages use one NCCL communicator of all ranks. Collectives use one
// NCCL communicator per group and stream, split off in the constructor. So sums of gradients and
// sums of statistics over one group do not wait for each other. Every call is wrapped in a group of
// NCCL's calls (ncclGroupStart), whose end NcclHandle::settle can wait for.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/nccl.hpp"
#include "runtime/comm/nccl/handle.hpp"
#include "runtime/comm/nccl/pieces.hpp"
#include "runtime/cuda/check.hpp"

namespace stratplan {
namespace {

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::F32: return ncclFloat32;
    case DataType::F64: return ncclFloat64;
    case DataType::F16: return ncclFloat16;
    case DataType::BF16: return ncclBfloat16;
    case DataType::I32: return ncclInt32;
  }
  SP_ASSERT(false, "NCCL has no type for {}", name_of(type));
  return ncclNumTypes;
}

std::string text_of(ncclResult_t result, ncclComm_t comm) {
  // If `comm` is null, this is the last error of the process.
  const std::string last = ncclGetLastError(comm);
  return last.empty() ? ncclGetErrorString(result)
                      : fmt::format("{}: {}", ncclGetErrorString(result), last);
}

bool failed(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

/// Returns `first` if it is a failure, else `last`.
ncclResult_t worse(ncclResult_t first, ncclResult_t last) { return failed(first) ? first : last; }

template <class T>
T* at(T* data, std::int64_t element, DataType type) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(data) + element * size_of(type);
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Makes calls within one group of NCCL's calls, and keeps the first failure.
class Calls {
 public:
  template <class... Arguments, class... Given>
  void operator()(ncclResult_t (*call)(Arguments...), Given... given) {
    result_ = worse(result_, call(given...));
  }
  ncclResult_t result() const { return result_; }

 private:
  ncclResult_t result_ = ncclSuccess;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Communicator& bootstrap, Backend& backend,
                   const std::vector<CollectiveGroup>& groups, const NcclOptions& options);
  ~NcclCommunicator() override {
    while (!handles_.empty()) handles_.pop_back();  // handles of groups end before their parent
  }

  int rank() const override { return bootstrap_.rank(); }
  int size() const override { return bootstrap_.size(); }
  Group group(const std::vector<int>& ranks) override;
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;
  void barrier() override { bootstrap_.barrier(); }
  void synchronize(Stream stream) override;
  bool poll(Stream stream) override;
  bool captured() const override { return true; }
  void replayed() override;

 private:
  struct Members {
    std::vector<int> ranks;
    int index = 0;  ///< this rank's index among the members
    /// null for a stream on which the group has no collectives
    std::array<NcclHandle*, 3> by_stream{};
  };
  /// The latest call on a stream, for error messages.
  struct Call {
    const char* verb = "";
    int tag = -1;  ///< tag of an exchange; -1 for other calls
    std::vector<int> ranks;
    std::int64_t under_way = 0;            ///< number of calls that may not have ended
    Backend::Event ready = Backend::none;  ///< when the kernels before the call end
  };

  cudaStream_t native(Stream stream) const {
    return static_cast<cudaStream_t>(backend_.native_stream(stream));
  }
  Members& members(Group group) { return members_[static_cast<std::size_t>(group)]; }
  NcclHandle& root() { return *handles_.front(); }
  NcclHandle& handle(const Members& members, Stream stream) const;
  Call& call(Stream stream) { return calls_[static_cast<std::size_t>(stream)]; }
  void follow_kernels(Stream stream);
  void note(Stream stream, const char* verb, const std::vector<int>& ranks);

  ncclUniqueId share_id();
  void connect();
  void split(const std::vector<CollectiveGroup>& round);
  template <class Enqueue>
  void issue(Stream stream, NcclHandle& handle, Enqueue enqueue);
  void copy(Stream stream, const void* from, void* to, Bytes bytes);
  void require(ncclResult_t result, const NcclHandle* handle, Stream stream);

  Communicator& bootstrap_;
  Backend& backend_;
  NcclOptions options_;
  ncclConfig_t config_ = NCCL_CONFIG_INITIALIZER;
  std::vector<int> all_;                              ///< all ranks
  std::vector<std::unique_ptr<NcclHandle>> handles_;  ///< of all ranks, then of each group
  std::map<std::vector<int>, Group> names_;
  std::vector<Members> members_;
  std::array<Call, 3> calls_;  ///< by stream
  std::vector<Piece> pieces_;
};

NcclCommunicator::NcclCommunicator(Communicator& bootstrap, Backend& backend,
                                   const std::vector<CollectiveGroup>& groups,
                                   const NcclOptions& options)
    : bootstrap_(bootstrap), backend_(backend), options_(options) {
  config_.blocking = 0;
  config_.maxCTAs = options.most_ctas;
  connect();
  for (const std::vector<CollectiveGroup>& round : rounds_of(gather_groups(groups, bootstrap)))
    split(round);
}

ncclUniqueId NcclCommunicator::share_id() {
  ncclUniqueId id{};
  if (rank() == 0) require(ncclGetUniqueId(&id), nullptr, Stream::Compute);
  static_assert(sizeof(id) % sizeof(std::int32_t) == 0);
  std::array<std::int32_t, sizeof(id) / sizeof(std::int32_t)> numbers{};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), 0);
  counts.front() = std::ssize(numbers);
  std::memcpy(numbers.data(), &id, sizeof(id));
  bootstrap_.all_gather(Stream::Compute, all_ranks(bootstrap_), numbers.data(), numbers.data(),
                        counts, DataType::I32);
  bootstrap_.synchronize(Stream::Compute);
  std::memcpy(&id, numbers.data(), sizeof(id));
  return id;
}

void NcclCommunicator::connect() {
  all_.resize(stratplan::size(size()));
  std::iota(all_.begin(), all_.end(), 0);
  note(Stream::Compute, "connecting", all_);
  const ncclUniqueId id = share_id();
  ncclComm_t comm = nullptr;
  const ncclResult_t started = ncclCommInitRankConfig(&comm, size(), id, rank(), &config_);
  handles_.push_back(std::make_unique<NcclHandle>(comm, options_.timeout));
  require(root().settle(started), &root(), Stream::Compute);
}

/// Makes one round of groups. The split of a non-blocking communicator returns ncclSuccess while it
/// is in progress. The new communicator exists once its parent has settled.
void NcclCommunicator::split(const std::vector<CollectiveGroup>& round) {
  const int mine = group_with(rank(), round);
  const CollectiveGroup* group = mine < 0 ? nullptr : &round[static_cast<std::size_t>(mine)];
  note(Stream::Compute, "split into groups", group ? group->ranks : std::vector<int>{rank()});
  ncclComm_t comm = nullptr;
  const ncclResult_t started =
      ncclCommSplit(root().comm(), group ? mine : NCCL_SPLIT_NOCOLOR, rank(), &comm, &config_);
  require(root().settle(started == ncclSuccess ? ncclInProgress : started), &root(),
          Stream::Compute);
  if (!group) return;
  handles_.push_back(std::make_unique<NcclHandle>(comm, options_.timeout));
  require(handles_.back()->settle(ncclInProgress), handles_.back().get(), Stream::Compute);
  members(this->group(group->ranks)).by_stream[static_cast<std::size_t>(group->stream)] =
      handles_.back().get();
}

Communicator::Group NcclCommunicator::group(const std::vector<int>& ranks) {
  const auto [name, fresh] = names_.try_emplace(ranks, static_cast<Group>(members_.size()));
  if (fresh) {
    const auto place = std::find(ranks.begin(), ranks.end(), rank());
    SP_ASSERT(place != ranks.end(), "rank {} is not in the group {}, which it asks for", rank(),
              ranks);
    members_.push_back({ranks, static_cast<int>(place - ranks.begin()), {}});
  }
  return name->second;
}

NcclHandle& NcclCommunicator::handle(const Members& members, Stream stream) const {
  NcclHandle* found = members.by_stream[static_cast<std::size_t>(stream)];
  SP_ASSERT(found, "the group of ranks {} has no communicator for stream {}", members.ranks,
            static_cast<int>(stream));
  return *found;
}

void NcclCommunicator::note(Stream stream, const char* verb, const std::vector<int>& ranks) {
  Call& latest = call(stream);
  latest.verb = verb;
  latest.tag = -1;
  latest.ranks = ranks;
}

/// Makes the next call on the stream wait for all kernels enqueued so far.
void NcclCommunicator::follow_kernels(Stream stream) {
  Call& next = call(stream);
  if (stream != Stream::Compute)
    backend_.wait(stream, next.ready = backend_.record(Stream::Compute, next.ready));
  ++next.under_way;
}

/// Enqueues one group of NCCL's calls on the stream.
template <class Enqueue>
void NcclCommunicator::issue(Stream stream, NcclHandle& handle, Enqueue enqueue) {
  follow_kernels(stream);
  require(ncclGroupStart(), &handle, stream);
  Calls calls;
  enqueue(calls, handle.comm(), native(stream));
  const ncclResult_t ended = ncclGroupEnd();
  require(failed(calls.result()) ? calls.result() : handle.settle(ended), &handle, stream);
}

void NcclCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                                std::span<const Parcel> receives, int tag) {
  Call& latest = call(stream);
  note(stream, "exchange", {});
  latest.tag = tag;
  for (const auto& parcels : {sends, receives})
    for (const Parcel& parcel : parcels)
      if (std::ranges::find(latest.ranks, parcel.peer) == latest.ranks.end())
        latest.ranks.push_back(parcel.peer);
  issue(stream, root(), [&](Calls& calls, ncclComm_t comm, cudaStream_t on) {
    for (const auto& [peer, data, bytes] : sends)
      if (bytes.value > 0)
        calls(ncclSend, data, stratplan::size(bytes.value), ncclUint8, peer, comm, on);
    for (const auto& [peer, data, bytes] : receives)
      if (bytes.value > 0)
        calls(ncclRecv, data, stratplan::size(bytes.value), ncclUint8, peer, comm, on);
  });
}

void NcclCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                  DataType type) {
  const Members& all = members(group);
  if (all.ranks.size() == 1 || count == 0) return;
  note(stream, "all-reduce", all.ranks);
  issue(stream, handle(all, stream), [&](Calls& calls, ncclComm_t comm, cudaStream_t on) {
    calls(ncclAllReduce, data, data, stratplan::size(count), nccl_type(type), ncclSum, comm, on);
  });
}

void NcclCommunicator::reduce_scatter(Stream stream, Group group, const void* input, void* output,
                                      std::span<const std::int64_t> counts, DataType type) {
  const Members& all = members(group);
  if (all.ranks.size() == 1) return copy(stream, input, output, {counts[0] * size_of(type)});
  note(stream, "reduce-scatter", all.ranks);
  split_pieces(counts, pieces_);
  issue(stream, handle(all, stream), [&](Calls& calls, ncclComm_t comm, cudaStream_t on) {
    if (pieces_.empty())
      calls(ncclReduceScatter, input, output, stratplan::size(counts[0]), nccl_type(type), ncclSum,
            comm, on);
    for (const auto& [member, begin, count] : pieces_)
      calls(ncclReduce, at(input, begin, type), output, stratplan::size(count), nccl_type(type),
            ncclSum, member, comm, on);
  });
}

void NcclCommunicator::all_gather(Stream stream, Group group, const void* input, void* output,
                                  std::span<const std::int64_t> counts, DataType type) {
  const Members& all = members(group);
  if (all.ranks.size() == 1) return copy(stream, input, output, {counts[0] * size_of(type)});
  note(stream, "all-gather", all.ranks);
  split_pieces(counts, pieces_);
  issue(stream, handle(all, stream), [&](Calls& calls, ncclComm_t comm, cudaStream_t on) {
    if (pieces_.empty())
      calls(ncclAllGather, input, output, stratplan::size(counts[0]), nccl_type(type), comm, on);
    for (const auto& [member, begin, count] : pieces_)
      calls(ncclBroadcast, member == all.index ? input : at(output, begin, type),
            at(output, begin, type), stratplan::size(count), nccl_type(type), member, comm, on);
  });
}

/// Performs a collective of a group with one rank, which only copies.
void NcclCommunicator::copy(Stream stream, const void* from, void* to, Bytes bytes) {
  if (from == to || bytes.value == 0) return;
  note(stream, "copy", {rank()});
  follow_kernels(stream);
  check_cuda(cudaMemcpyAsync(to, from, stratplan::size(bytes.value), cudaMemcpyDeviceToDevice,
                             native(stream)),
             "copying on the device");
}

/// Notes the replay as a call with all ranks, because a replay contains calls on all streams and
/// with different ranks.
void NcclCommunicator::replayed() {
  note(Stream::Compute, "a replay of a CUDA graph", all_);
  ++call(Stream::Compute).under_way;
}

void NcclCommunicator::synchronize(Stream stream) {
  const Deadline deadline(options_.timeout);
  while (!poll(stream)) {
    if (deadline.passed()) require(ncclInProgress, nullptr, stream);
    std::this_thread::yield();
  }
}

bool NcclCommunicator::poll(Stream stream) {
  if (call(stream).under_way == 0) return true;
  const cudaError_t state = cudaStreamQuery(native(stream));
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears cudaErrorNotReady, which is no error
    for (const auto& handle : handles_) require(handle->state(), handle.get(), stream);
    return false;
  }
  check_cuda(state, call(stream).verb);
  call(stream).under_way = 0;
  return true;
}

/// Throws CommunicationError unless `result` is ncclSuccess. Before the throw, aborts all calls
/// under way, so that no later call waits for them.
void NcclCommunicator::require(ncclResult_t result, const NcclHandle* handle, Stream stream) {
  if (result == ncclSuccess) return;
  const auto& [verb, tag, ranks, under_way, ready] = call(stream);
  const std::string what = tag < 0 ? fmt::format("{} with ranks {}", verb, ranks)
                                   : fmt::format("{} of tag {} with ranks {}", verb, tag, ranks);
  const std::string why = result == ncclInProgress
                              ? fmt::format("no answer within {:g} s", options_.timeout.value)
                              : "NCCL: " + text_of(result, handle ? handle->comm() : nullptr);
  const std::string more =
      under_way > 1 ? fmt::format(" ({} earlier calls are under way)", under_way - 1) : "";
  for (const auto& each : handles_) each->abort();
  throw CommunicationError(fmt::format("rank {}: {}: {}{}", rank(), what, why, more));
}

void check_device() {
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "looking for a device, for NCCL");
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& bootstrap, Backend& backend,
                                                     const std::vector<CollectiveGroup>& groups,
                                                     const NcclOptions& options) {
  if (backend.native_stream(Stream::Halo) == nullptr)
    throw EnvironmentError(fmt::format(
        "NCCL moves data between CUDA devices, but the {} backend has none", backend.name()));
  check_device();
  return std::make_unique<NcclCommunicator>(bootstrap, backend, groups, options);
}

}  // namespace stratplan
