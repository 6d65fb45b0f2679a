#pragma once
// Between devices of NVIDIA, from memory to memory. Without CUDA in the build the same function
// throws EnvironmentError naming STRATPLAN_WITH_CUDA (runtime/stub/nccl.cpp).
#include <memory>

#include "model/base/units.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/collective_groups.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan {

struct NcclOptions {
  Seconds timeout{300};  ///< without an answer, after which all is given up
  /// of a kernel of NCCL's, each of which takes a multiprocessor away from the kernels beside it
  int most_ctas = 16;
};

/// Verbs on the addresses of `backend`, on its streams (Backend::native_stream): a verb follows
/// what is enqueued on Stream::Compute, the host waits for nothing, and what needs the result waits
/// for the stream's stream, by an event or by synchronize. `bootstrap` brings the ranks together,
/// and is their barrier; `groups` are those of this rank's program: collectives of others are not
/// possible. Called by all ranks; the arguments must outlive what is made. Sums are added in
/// whatever order NCCL chooses; they come out equal on all members, and equal each time on the same
/// machine.
///
/// Kernels and calls may be captured into a CUDA graph, in a mode other than
/// cudaStreamCaptureModeGlobal (NCCL enqueues from threads of its own), once each verb has been
/// called outside of one: NCCL connects and allocates at first use. Graphs must go before this
/// does, for its end waits for theirs.
///
/// A failure, or none to answer within the timeout, is a CommunicationError that names the verb and
/// the ranks, and aborts what is under way; so does destruction while an exception passes. Throws
/// EnvironmentError: a backend without streams of CUDA, a device or a library that is not there.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& bootstrap, Backend& backend,
                                                     const std::vector<CollectiveGroup>& groups,
                                                     const NcclOptions& options = {});

}  // namespace stratplan
