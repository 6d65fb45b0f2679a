#pragma once
// Replaces the calls of NCCL and CUDA that the communicator makes by calls between threads, on host
// memory. Linked before the libraries, these functions replace theirs. Every call of a communicator
// is in progress for a while, and the calls of a group are executed at its end. Include this file
// once in a program.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/base/assert.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan::test {

/// The state that threads which abort share with the calling thread.
struct FakeAborts {
  std::atomic<int> ended = 0;
  /// whether a graph lives that holds calls of the communicators; an abort does not end before
  std::atomic<bool> graph_lives = false;
};

/// The behaviour of this thread's NCCL, and the calls made to it.
struct FakeNccl {
  Communicator* engine = nullptr;  ///< executes the calls
  int asked = 0;                   ///< how often a call or a stream was found in progress
  bool hangs = false;              ///< calls are in progress forever
  bool streams_hang = false;
  ncclResult_t state = ncclSuccess;  ///< the result of a call
  // The calls that were made.
  int splits = 0, destroyed = 0, blocking = -1, most_ctas = -1;
  std::shared_ptr<FakeAborts> aborts = std::make_shared<FakeAborts>();
  std::vector<std::string> calls;
};
inline thread_local FakeNccl fake_nccl;

}  // namespace stratplan::test

/// A communicator, by its ranks in the engine.
struct ncclComm {
  std::vector<int> ranks;
  int in_progress = 0;
  std::function<void()> at_end{};  ///< what its call does when it ends
  std::shared_ptr<stratplan::test::FakeAborts> aborts = stratplan::test::fake_nccl.aborts;
};

namespace stratplan::test {

/// The group that is open on this thread.
struct FakeGroup {
  int depth = 0;
  ncclComm_t comm = nullptr;
  std::vector<Communicator::Parcel> sends, receives;
  std::vector<std::function<void()>> collectives;
};
inline thread_local FakeGroup fake_group;

inline DataType type_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32: return DataType::F32;
    case ncclFloat64: return DataType::F64;
    case ncclInt32: return DataType::I32;
    default: SP_ASSERT(false, "no type {} here", static_cast<int>(type)); return DataType::F32;
  }
}

inline ncclResult_t begin_call(ncclComm_t comm) {
  SP_ASSERT(comm->in_progress == 0, "a call while another is in progress");
  comm->in_progress = fake_nccl.hangs ? 1 << 30 : 3;
  return ncclInProgress;
}

inline ncclResult_t enqueue(const char* name, ncclComm_t comm, std::function<void()> work) {
  SP_ASSERT(fake_group.depth == 1 && comm->in_progress == 0,
            "{}: {} groups are open, {} in progress", name, fake_group.depth, comm->in_progress);
  fake_nccl.calls.emplace_back(name);
  fake_group.comm = comm;
  if (work) fake_group.collectives.push_back(std::move(work));
  return ncclSuccess;
}

inline std::vector<std::int64_t> only(std::size_t members, int member, std::size_t count) {
  std::vector<std::int64_t> counts(members, 0);
  counts[static_cast<std::size_t>(member)] = static_cast<std::int64_t>(count);
  return counts;
}

}  // namespace stratplan::test

extern "C" {

using namespace stratplan::test;
using stratplan::Communicator;
using stratplan::Stream;

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::iota(std::begin(id->internal), std::end(id->internal), '\1');
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  ncclUniqueId expected;
  ncclGetUniqueId(&expected);
  SP_ASSERT(std::memcmp(&id, &expected, sizeof(id)) == 0 && ranks == fake_nccl.engine->size() &&
                rank == fake_nccl.engine->rank(),
            "another job's id");
  fake_nccl.blocking = config->blocking;
  fake_nccl.most_ctas = config->maxCTAs;
  *comm = new ncclComm{std::vector<int>(static_cast<std::size_t>(ranks))};
  std::iota((*comm)->ranks.begin(), (*comm)->ranks.end(), 0);
  return begin_call(*comm);
}
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int, ncclComm_t* comm, ncclConfig_t*) {
  ++fake_nccl.splits;
  // All ranks take part, so a rank that left this call out would make the others wait.
  const auto colors = stratplan::gather(std::vector<std::int32_t>{color}, *fake_nccl.engine);
  *comm = nullptr;  // until the split has ended
  if (color != NCCL_SPLIT_NOCOLOR) {
    parent->at_end = [=] {
      *comm = new ncclComm;
      for (const int rank : parent->ranks)
        if (colors[static_cast<std::size_t>(rank)].front() == color) (*comm)->ranks.push_back(rank);
      begin_call(*comm);
    };
  }
  begin_call(parent);
  return ncclSuccess;  // NCCL does so although the split is in progress
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm->in_progress > 0 && --comm->in_progress == 0)
    if (const auto at_end = std::exchange(comm->at_end, nullptr)) at_end();
  *state = comm->in_progress > 0 ? ncclInProgress : fake_nccl.state;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return begin_call(comm); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ++fake_nccl.destroyed;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  while (comm->aborts->graph_lives) std::this_thread::yield();
  ++comm->aborts->ended;
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "remote process exited or there was a network error";
}
const char* ncclGetLastError(ncclComm_t) { return "connection closed by remote peer"; }

ncclResult_t ncclGroupStart() {
  ++fake_group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  SP_ASSERT(fake_group.depth == 1, "{} groups are open", fake_group.depth);
  const FakeGroup group = std::exchange(fake_group, {});
  if (!group.comm) return ncclSuccess;
  if (group.sends.size() + group.receives.size() > 0)
    fake_nccl.engine->exchange(Stream::Halo, group.sends, group.receives, 0);
  for (const auto& collective : group.collectives) collective();
  return begin_call(group.comm);
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t) {
  fake_group.sends.push_back({comm->ranks.at(static_cast<std::size_t>(peer)),
                              const_cast<void*>(data),
                              {static_cast<std::int64_t>(count)}});
  return enqueue("send", comm, {});
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t) {
  fake_group.receives.push_back(
      {comm->ranks.at(static_cast<std::size_t>(peer)), data, {static_cast<std::int64_t>(count)}});
  return enqueue("receive", comm, {});
}
ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  SP_ASSERT(input == output, "{} and {}", input, output);
  return enqueue("all-reduce", comm, [=, &engine = *fake_nccl.engine] {
    engine.all_reduce(Stream::Compute, engine.group(comm->ranks), output,
                      static_cast<std::int64_t>(count), type_of(type));
  });
}
ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return enqueue("reduce-scatter", comm, [=, &engine = *fake_nccl.engine] {
    const std::vector<std::int64_t> counts(comm->ranks.size(), static_cast<std::int64_t>(count));
    engine.reduce_scatter(Stream::Compute, engine.group(comm->ranks), input, output, counts,
                          type_of(type));
  });
}
ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                        ncclRedOp_t, int root, ncclComm_t comm, cudaStream_t) {
  return enqueue("reduce", comm, [=, &engine = *fake_nccl.engine] {
    engine.reduce_scatter(Stream::Compute, engine.group(comm->ranks), input, output,
                          only(comm->ranks.size(), root, count), type_of(type));
  });
}
ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return enqueue("all-gather", comm, [=, &engine = *fake_nccl.engine] {
    const std::vector<std::int64_t> counts(comm->ranks.size(), static_cast<std::int64_t>(count));
    engine.all_gather(Stream::Compute, engine.group(comm->ranks), input, output, counts,
                      type_of(type));
  });
}
ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t) {
  return enqueue("broadcast", comm, [=, &engine = *fake_nccl.engine] {
    engine.all_gather(Stream::Compute, engine.group(comm->ranks), input, output,
                      only(comm->ranks.size(), root, count), type_of(type));
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  if (fake_nccl.streams_hang || ++fake_nccl.asked % 3 != 0) return cudaErrorNotReady;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

}  // extern "C"
