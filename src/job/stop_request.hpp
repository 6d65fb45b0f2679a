#pragma once
// Requests to stop. They are SIGUSR1, which batch systems send before a job's time runs out,
// SIGTERM, and SIGINT, which Ctrl-C sends. The handler sets a flag, which the training polls.
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// If the launcher supervises the job, SIGTERM from now on is recorded before it ends this rank.
/// The record distinguishes ranks that were told to end from the rank whose death was the cause.
void note_being_ended(FlightRecorder recorder);

/// From now on SIGUSR1, SIGTERM and the first SIGINT do not end this process; a second SIGINT does.
/// If the launcher supervises the job (run -n P), the launcher passes all three signals on as
/// SIGUSR1. A SIGTERM is then only recorded: mpirun sends SIGTERM to the survivors of a rank that
/// died, about a second before it kills them.
void catch_stop_requests();

/// Prints, in answer to the first SIGINT, that the job stops after the current step, which may take
/// long. `from_terminal`: the terminal has printed ^C. Safe in signal handlers.
void answer_interrupt(bool from_terminal);

/// Whether this process was ever asked to stop.
bool stop_requested();

}  // namespace stratplan
