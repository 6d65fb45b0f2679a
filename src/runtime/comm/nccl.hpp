#pragma once
// Communication between NVIDIA devices, from device memory to device memory. Without CUDA in the
// build, make_nccl_communicator() throws an EnvironmentError that names STRATPLAN_WITH_CUDA
// (runtime/stub/nccl.cpp).
#include <memory>

#include "model/base/units.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/collective_groups.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan {

struct NcclOptions {
  Seconds timeout{300};  ///< time without an answer after which a call fails
  /// upper limit on the blocks (CTAs) of one NCCL kernel; each block takes a multiprocessor from
  /// other kernels
  int most_ctas = 16;
};

/// Makes a communicator between addresses in the memory of `backend`. Calls run on the backend's
/// streams (Backend::native_stream). A call begins after all work enqueued on Stream::Compute so
/// far; the host does not wait. Work that needs the result must wait for the call's stream, by an
/// event or by synchronize(). `bootstrap` connects the ranks, and serves as their barrier. `groups`
/// are the groups of this rank's program, and a collective of any other group is a bug. Called by
/// all ranks. `bootstrap` and `backend` must outlive the communicator. NCCL chooses the order of
/// additions. Sums are equal on all members, and in every run on the same machine.
///
/// Kernels and calls may be captured into a CUDA graph in any mode but cudaStreamCaptureModeGlobal,
/// because NCCL enqueues from threads of its own. Each call must have been made before without
/// capture, because NCCL connects and allocates at first use. Graphs must be destroyed before the
/// communicator, whose destructor waits for their end.
///
/// A failed call, or one without an answer within the timeout, throws a CommunicationError that
/// names the call and the ranks, and aborts all calls under way. Destruction by an exception also
/// aborts them. Throws EnvironmentError if the backend has no CUDA streams, or if a device or
/// library is missing.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& bootstrap, Backend& backend,
                                                     const std::vector<CollectiveGroup>& groups,
                                                     const NcclOptions& options = {});

}  // namespace stratplan
