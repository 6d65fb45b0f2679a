#include "runtime/comm/nccl/handle.hpp"

#include <system_error>
#include <thread>
#include <utility>

namespace stratplan {

ncclResult_t NcclHandle::settle(ncclResult_t started) const {
  if (comm_ == nullptr) return started;
  const Deadline deadline(patience_);
  ncclResult_t state = started;
  while (state == ncclInProgress && !deadline.passed()) {
    std::this_thread::yield();
    if (const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state); asked != ncclSuccess)
      return asked;
  }
  return state;
}

ncclResult_t NcclHandle::state() const {
  ncclResult_t state = ncclSuccess;
  if (comm_ == nullptr) return state;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) return asked;
  return state == ncclInProgress ? ncclSuccess : state;
}

void NcclHandle::abort() noexcept {
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  try {
    aborting_ = std::thread([comm] { ncclCommAbort(comm); });
  } catch (const std::system_error&) {  // the system cannot start a thread
    ncclCommAbort(comm);
  }
}

NcclHandle::~NcclHandle() {
  if (comm_ != nullptr) {
    const bool passing = std::uncaught_exceptions() > exceptions_;
    if (passing || settle(ncclCommFinalize(comm_)) != ncclSuccess)
      abort();
    else
      ncclCommDestroy(comm_);
  }
  if (aborting_.joinable()) aborting_.join();
}

}  // namespace stratplan
