#pragma once
// Ranks as processes, started by mpirun or srun. Without MPI in the build the same functions throw
// EnvironmentError naming STRATPLAN_WITH_MPI (runtime/stub/mpi.cpp).
//
// A rank that ends by an exception must take the others with it, for they would wait for it for
// ever. main() does it so:
//   MpiSession session;
//   try { body(*make_mpi_communicator()); }
//   catch (const Error& error) { print error; abort_all_ranks(exit code of error); }
// A rank that exits without having closed its session, or whose session is closed by an exception
// passing through, ends the job too.
#include <memory>
#include <optional>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Whether a launcher (Open MPI, MPICH and its kin, PMIx, Slurm with more than one task) started
/// this process as one of its ranks.
bool launched_by_mpi();

/// This process's number among the ranks of its job, as launchers (this program's own among them)
/// tell it before anything is started; -1: it is none, or they do not.
int launched_rank();
/// The same of another process of this machine and user; -1 also before it has become the program
/// that it was started for.
int launched_rank_of(int process);

/// MPI from construction to destruction, at most once in a process; only the constructing thread
/// may communicate. Destroyed while an exception passes, it ends all ranks with
/// ExitCode::Communication. Throws EnvironmentError if MPI can not start.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  int exceptions_;  ///< in flight at construction
};

/// All ranks of the job. Requires a living MpiSession, which it must not outlive; called by all
/// ranks.
std::unique_ptr<Communicator> make_mpi_communicator();

/// Whether its library takes addresses of NVIDIA's devices ("CUDA-aware"); nothing if it does not
/// tell. Requires a living MpiSession.
std::optional<bool> mpi_takes_device_memory();

/// Ends every rank of the job at once; the launcher exits with `exit_code`. Without a session it
/// ends this process alone.
[[noreturn]] void abort_all_ranks(int exit_code) noexcept;

}  // namespace stratplan
