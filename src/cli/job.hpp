#pragma once
// This process as one rank of a job, and how a failure of one rank ends all.
#include <exception>
#include <functional>

#include "runtime/communicator.hpp"

namespace stratplan {

/// A job that this process only launched has failed and said why: nothing is left but its exit code.
struct JobFailed {
  int exit_code;
};

/// Prints what is wrong as one line, once for the whole job, and returns the documented exit code; as a rank, ends the other ranks with it.
int report_failure(const std::exception_ptr& failure);

/// Whether a launcher started this process as one rank of a job: mpirun, srun, or this program (runtime/comm/processes).
bool launched_as_rank();

/// Runs `body` as the rank that this process is. Whatever it throws is reported and ends all ranks.
void run_as_rank(const std::function<void(Communicator&)>& body);

/// A job of one rank, without MPI.
void run_alone(const std::function<void(Communicator&)>& body);

}  // namespace stratplan
