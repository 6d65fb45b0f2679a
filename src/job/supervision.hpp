#pragma once
// Starts a job and watches it to its end. If one rank fails, all ranks are ended, with one message.
#include <chrono>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct JobRequest {
  std::vector<std::string> arguments;  ///< arguments of the ranks
  bool mpi = true;                     ///< start ranks under mpirun if possible; false: never
  bool makes_checkpoints = false;
  std::chrono::seconds patience{60};  ///< how long the job may stand still; 0: without limit
};

/// Starts this program again as the plan's ranks and returns the job's exit code. Logs the failures
/// that no rank can report itself: a rank was killed, has ended without a message, or hangs.
int run_job(const PlanAndNetwork& planned, const JobRequest& request, Log& log);

}  // namespace stratplan
