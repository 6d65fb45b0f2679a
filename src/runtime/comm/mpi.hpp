#pragma once
// A communicator between ranks that are processes started by mpirun or srun. Without MPI in the
// build, MpiSession and make_mpi_communicator() throw an EnvironmentError that names
// STRATPLAN_WITH_MPI (runtime/stub/mpi.cpp).
//
// A rank that ends by an exception must end the other ranks too. Otherwise they would wait for that
// rank forever. main() does so:
//   MpiSession session;
//   try { body(*make_mpi_communicator()); }
//   catch (const Error& error) { print error; abort_all_ranks(exit code of error); }
// A rank also ends the job if it exits without destroying its session, or if an exception destroys
// the session.
#include <memory>
#include <optional>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Whether a launcher started this process as one of its ranks. Launchers are Open MPI, MPICH and
/// its relatives, PMIx, and Slurm with more than one task.
bool launched_by_mpi();

/// Whether this program was built with Open MPI. Only then does the program itself call mpirun to
/// start ranks, because the launchers of other MPI libraries take other options.
bool built_with_open_mpi();

/// Returns this process's rank from the environment variables of launchers, including this
/// program's own launcher, without starting MPI. The result is -1 if the process is no rank, or if
/// its launcher sets no variable.
int launched_rank();
/// Returns the rank of another process of this machine and user, as launched_rank() does. The
/// result is also -1 until that process has executed the program that it was started for.
int launched_rank_of(int process);

/// Starts MPI in its constructor and ends it in its destructor, at most once in a process. Only the
/// constructing thread may communicate. If an exception destroys the session, the destructor ends
/// all ranks with ExitCode::Communication. Throws EnvironmentError if MPI cannot start.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  int exceptions_;  ///< number of exceptions in flight at construction
};

/// Makes a communicator of all ranks of the job. Called by all ranks. Requires a living MpiSession,
/// which the communicator must not outlive.
std::unique_ptr<Communicator> make_mpi_communicator();

/// Whether the MPI library takes addresses of NVIDIA's devices ("CUDA-aware"). The result is empty
/// if the library does not tell. Requires a living MpiSession.
std::optional<bool> mpi_takes_device_memory();

/// Ends every rank of the job at once; the launcher exits with `exit_code`. Without a session, ends
/// only this process.
[[noreturn]] void abort_all_ranks(int exit_code) noexcept;

}  // namespace stratplan
