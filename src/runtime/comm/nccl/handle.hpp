#pragma once
// One communicator of NCCL's that never blocks: its calls may return while they are in progress,
// and whoever needs their end asks, up to a limit.
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
  /// Takes over a communicator made with blocking = 0; null: its making failed at once.
  NcclHandle(ncclComm_t comm, Seconds patience)
      : comm_(comm), patience_(patience), exceptions_(std::uncaught_exceptions()) {}
  /// Waits for what is under way; aborts it if an exception passes, or the others do not answer.
  /// Graphs with its calls must be gone.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  ncclComm_t comm() const { return comm_; }
  /// How a call ends that returned `started`; ncclInProgress: it has not within the time of
  /// patience. Only then may the next be made.
  ncclResult_t settle(ncclResult_t started) const;
  /// What went wrong beside the calls, or ncclSuccess.
  ncclResult_t state() const;
  /// Has all that is under way given up, and does not wait for that: NCCL's abort ends when the
  /// last graph with calls of its has gone, and what holds the graphs may go after this, but before
  /// the destructor, which waits.
  void abort() noexcept;

 private:
  ncclComm_t comm_;
  Seconds patience_;
  int exceptions_;  ///< in flight at construction
  std::thread aborting_{};
};

}  // namespace stratplan
