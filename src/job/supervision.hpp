#pragma once
// The job that this program started, watched to its end: whatever ends a rank ends all, with one
// message.
#include <chrono>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct JobRequest {
  std::vector<std::string> arguments;  ///< of the ranks
  bool mpi = true;                     ///< under mpirun, else over sockets
  bool makes_checkpoints = false;
  std::chrono::seconds patience{60};  ///< how long the job may stand still; 0: for ever
};

/// Starts this program again as the plan's ranks and returns the job's exit code. Says what no rank
/// could say itself: that one was killed, has ended without a word, or hangs.
int run_job(const PlanAndNetwork& planned, const JobRequest& request, Log& log);

}  // namespace stratplan
