#pragma once
// Being asked to stop: by SIGUSR1, as batch systems send it before time runs out, and by SIGTERM.
// The handler sets a flag; who trains looks at it.
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// Under the launcher: from now on SIGTERM is noted in the record before it ends this rank, so that
/// those that were ended can be told from the one whose death ended them.
void note_being_ended(FlightRecorder recorder);

/// From now on the two signals do not end this process. Where the launcher supervises the job (run
/// -n P), it passes both on as SIGUSR1, and SIGTERM is only noted here: mpirun sends that to the
/// survivors of a rank that died, about a second before it kills them.
void catch_stop_requests();

/// Whether this process was asked, ever.
bool stop_requested();

}  // namespace stratplan
