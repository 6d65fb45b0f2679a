#pragma once
// Owns one non-blocking communicator of NCCL. NCCL's calls may return while they are in progress.
// settle() waits for their end, up to a time limit.
#include <nccl.h>

#include <chrono>
#include <exception>
#include <thread>

#include "model/base/units.hpp"

namespace stratplan {

class Deadline {
 public:
  explicit Deadline(Seconds from_now)
      : at_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(from_now.value))) {}
  bool passed() const { return Clock::now() >= at_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_;
};

class NcclHandle {
 public:
  /// Takes ownership of a communicator made with blocking = 0. `comm` is null if the communicator
  /// could not be made. `patience` limits each wait.
  NcclHandle(ncclComm_t comm, Seconds patience)
      : comm_(comm), patience_(patience), exceptions_(std::uncaught_exceptions()) {}
  /// Waits for calls under way; aborts them if an exception destroys this object, or if the other
  /// ranks do not answer. Graphs with calls of this communicator must have been destroyed.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  ncclComm_t comm() const { return comm_; }
  /// Waits for the end of a call that returned `started`. Returns the call's result, or
  /// ncclInProgress if the call did not end in time. settle() must return before the communicator's
  /// next call.
  ncclResult_t settle(ncclResult_t started) const;
  /// Returns an error that occurred asynchronously, or ncclSuccess.
  ncclResult_t state() const;
  /// Begins to abort all calls under way, and returns at once. NCCL's abort ends only after the
  /// last graph with calls of this communicator was destroyed. The graphs' owner may destroy them
  /// after this call, but before the destructor, which waits for the abort.
  void abort() noexcept;

 private:
  ncclComm_t comm_;
  Seconds patience_;
  int exceptions_;  ///< number of exceptions in flight at construction
  std::thread aborting_{};
};

}  // namespace stratplan
