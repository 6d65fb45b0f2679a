#pragma once
// All ranks of one process, as threads: for tests, for verification and for machines without MPI.
// Sums are deterministic: every element is added in rank order. Nothing hangs: when a rank fails,
// those that wait for it are woken; when all that are left wait for each other, they are told so.
#include <functional>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Runs `body` on `ranks` (>= 1) threads, each with its end of one communicator; rank 0 is the
/// calling thread. An exception on one rank ends all (at their next wait) and is rethrown;
/// CommunicationError if the ranks wait for each other or disagree on a call.
void run_loopback(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace stratplan
