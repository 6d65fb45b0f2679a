#pragma once
// Requests to stop: SIGUSR1, which batch systems send before time runs out, and SIGTERM. The
// handler sets a flag, which the training polls.
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// Under the launcher, from now on, SIGTERM is noted in the record before it ends this rank. So the
/// ranks that were ended can be told from the rank whose death ended them.
void note_being_ended(FlightRecorder recorder);

/// From now on SIGUSR1 and SIGTERM do not end this process. If the launcher supervises the job (run
/// -n P), it passes both on as SIGUSR1, and SIGTERM is only noted here: mpirun sends SIGTERM to the
/// survivors of a rank that died, about a second before it kills them.
void catch_stop_requests();

/// Whether this process was ever asked to stop.
bool stop_requested();

}  // namespace stratplan
