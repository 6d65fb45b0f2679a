#pragma once
// Ranks as processes of this machine without MPI: this program, started several times over, its copies connected by sockets.
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"

namespace stratplan {

/// Runs this program's copies with `arguments` (its name left out) to their end. When one fails the others are ended, and its documented exit
/// code is the result; one that a signal killed is named on standard error and counts as a failure of communication. SIGINT and SIGTERM are passed on (result: 128 + N, unless the
/// ranks answer with a code of their own). Requires that this process has no other children. Throws EnvironmentError if they cannot be started.
int run_processes(int ranks, int threads_per_rank, const std::vector<std::string>& arguments);

/// Whether run_processes started this process.
bool launched_by_processes();
/// Its communicator: once in a process that run_processes started.
std::unique_ptr<Communicator> make_process_communicator();

}  // namespace stratplan
