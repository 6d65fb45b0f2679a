#pragma once
// This process as one rank of a job. A failure of one rank ends all ranks.
#include <exception>
#include <functional>
#include <string>

#include "runtime/device/communicator.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// Thrown when a job that this process only launched has failed. The job has reported why, so only
/// its exit code is left to return.
struct JobFailed {
  int exit_code;
};

/// An exception and the place where it was thrown: "rank 3 on HOST failed in step 17 during ...".
struct RankFailure {
  std::string place;
  std::exception_ptr cause;
};

/// Prints the failure as one line, once for the whole job, and returns the documented exit code
/// (model/base/error.hpp). A rank also ends the other ranks with this code.
int report_failure(const std::exception_ptr& failure);

/// Whether this process speaks for the whole job. Rank 0 does, and so does a process that is no
/// rank.
bool speaks();
/// Whether a launcher started this process as one rank of a job: mpirun, srun, or this program
/// (job/processes).
bool launched_as_rank();

/// The work of one rank.
using RankBody = std::function<void(Communicator&, FlightRecorder)>;

/// Runs `body` in this process, which is one rank, and records the rank's operations for the
/// supervisor if there is one. An exception of `body` is reported and ends all ranks.
void run_as_rank(const RankBody& body);

/// Runs a job without MPI: with ranks that are threads of this process, or with a single rank.
void run_as_threads(int ranks, const RankBody& body);
void run_alone(const RankBody& body);

}  // namespace stratplan
