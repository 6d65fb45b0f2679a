#pragma once
// Ranks as threads of one process: for tests, for verification and for machines without MPI. Sums
// are deterministic, because every element is added in rank order. No rank hangs. If a rank fails,
// the ranks that wait for it get an error. If all ranks wait for each other, all get an error.
#include <functional>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Runs `body` on `ranks` (>= 1) threads, each with its own rank's communicator. Rank 0 is the
/// calling thread. An exception on one rank ends the others at their next wait, and is rethrown
/// here. Throws CommunicationError if the ranks wait for each other or disagree on a call.
void run_loopback(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace stratplan
