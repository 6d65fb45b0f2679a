#pragma once
// Runs ranks as processes of this machine, without MPI. The processes are copies of this program
// that are connected by sockets.
#include <functional>
#include <string>
#include <vector>

namespace stratplan {

struct ProcessesEnd {
  /// the documented code (model/base/error.hpp) of the rank that failed, or 128 + N if signal N
  /// interrupted the job
  int exit_code = 0;
  bool interrupted = false;  ///< this process was asked to stop during the job
  int killed_by = 0;         ///< signal that killed a rank (exit_code is then 6); 0: none did
  int rank = -1;             ///< the rank that failed; -1: none
};

/// Runs copies of this program to their end. `arguments`: the arguments of a copy, without the
/// program's name. If a copy fails, the others are ended. `hangs` is polled. When it returns true,
/// all copies are ended with exit code 6. SIGINT, SIGTERM and SIGUSR1 are passed on to the copies.
/// Copies that make checkpoints get SIGUSR1 instead of any of these signals, and are killed at a
/// second SIGINT. A signal counts as an interruption unless the ranks end with an exit code of
/// their own. Requires that this process has no other children. Throws EnvironmentError if the
/// copies cannot be started.
ProcessesEnd run_processes(int ranks, int threads_per_rank,
                           const std::vector<std::string>& arguments,
                           const std::function<bool()>& hangs = {}, bool makes_checkpoints = false);

}  // namespace stratplan
