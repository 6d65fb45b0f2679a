#pragma once
// This process as one rank of a job, and how a failure of one rank ends all.
#include <exception>
#include <functional>
#include <string>

#include "runtime/device/communicator.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// A job that this process only launched has failed and said why: nothing is left but its exit
/// code.
struct JobFailed {
  int exit_code;
};

/// An exception with where it came up: "rank 3 on HOST failed in step 17 during ...".
struct RankFailure {
  std::string place;
  std::exception_ptr cause;
};

/// Prints what is wrong as one line, once for the whole job, and returns the documented exit code;
/// as a rank, ends the other ranks with it.
int report_failure(const std::exception_ptr& failure);

/// Whether this process speaks for the job: rank 0, or not a rank at all.
bool speaks();
/// Whether a launcher started this process as one rank of a job: mpirun, srun, or this program
/// (job/processes).
bool launched_as_rank();

/// What a rank does.
using RankBody = std::function<void(Communicator&, FlightRecorder)>;

/// Runs `body` as the rank that this process is, recorded for a supervisor if there is one.
/// Whatever it throws is reported and ends all ranks.
void run_as_rank(const RankBody& body);

/// A job of ranks that are threads of this process, and one of a single rank: without MPI.
void run_as_threads(int ranks, const RankBody& body);
void run_alone(const RankBody& body);

}  // namespace stratplan
