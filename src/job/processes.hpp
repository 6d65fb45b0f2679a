#pragma once
// Ranks as processes of this machine without MPI: this program, started several times over, its
// copies connected by sockets.
#include <functional>
#include <string>
#include <vector>

namespace stratplan {

struct ProcessesEnd {
  int exit_code = 0;  ///< a documented code (base/error.hpp) of the rank that failed, or 128 + N if
                      ///< signal N interrupted
  bool interrupted = false;  ///< this process was asked to stop meanwhile
  int killed_by = 0;         ///< the signal that killed a rank, which makes exit code 6; 0: none
  int rank = -1;             ///< that failed; -1: none
};

/// Runs this program's copies with `arguments` (its name left out) to their end. When one fails, or
/// `hangs`, asked all the time, says so (exit code 6), the others are ended. SIGINT, SIGTERM and
/// SIGUSR1 are passed on, and interrupt unless the ranks answer with a code of their own. Requires
/// that this process has no other children. Throws EnvironmentError if they cannot be started.
ProcessesEnd run_processes(int ranks, int threads_per_rank,
                           const std::vector<std::string>& arguments,
                           const std::function<bool()>& hangs = {});

}  // namespace stratplan
