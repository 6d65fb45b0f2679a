#pragma once
// Being asked to stop: by SIGUSR1, as batch systems send it before time runs out, and by SIGTERM. The handler sets a flag; who trains looks at it.
namespace stratplan {

/// From now on the two signals do not end this process. Where the launcher supervises the job (run -n P), it passes both on as SIGUSR1, and SIGTERM is
/// ignored here: mpirun sends that to the survivors of a rank that died, about a second before it kills them.
void catch_stop_requests();

/// Whether this process was asked, ever.
bool stop_requested();

}  // namespace stratplan
