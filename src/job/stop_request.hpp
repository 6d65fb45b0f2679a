#pragma once
// Requests to stop: SIGUSR1, which batch systems send before time runs out, SIGTERM, and SIGINT,
// which is Ctrl-C. The handler sets a flag, which the training polls.
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// Under the launcher, from now on, SIGTERM is noted in the record before it ends this rank. So the
/// ranks that were ended can be told from the rank whose death ended them.
void note_being_ended(FlightRecorder recorder);

/// From now on SIGUSR1, SIGTERM and the first SIGINT do not end this process; a second SIGINT does.
/// If the launcher supervises the job (run -n P), it passes all on as SIGUSR1, and SIGTERM is only
/// noted here: mpirun sends SIGTERM to the survivors of a rank that died, about a second before it
/// kills them.
void catch_stop_requests();

/// Answers the first SIGINT on standard error: a step may be long. Safe in signal handlers.
void answer_interrupt(bool from_terminal);

/// Whether this process was ever asked to stop.
bool stop_requested();

}  // namespace stratplan
