#pragma once
// A communicator between ranks that are threads of one process. It serves tests, verification and
// machines without MPI. Sums are deterministic, because the terms of each element are added in rank
// order. No rank hangs. If a rank fails, the ranks that wait for it get an error. If all ranks wait
// for each other, all ranks get an error.
#include <functional>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Runs `body` on `ranks` (>= 1) threads, each with the communicator of its own rank. Rank 0 is the
/// calling thread. An exception on one rank ends the others at their next wait, and is rethrown
/// here. Throws CommunicationError if the ranks wait for each other or disagree on a call.
void run_loopback(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace stratplan
