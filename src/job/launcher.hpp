#pragma once
// Starts this program again as the ranks of a job: directly for one rank, else under mpirun with
// the options that it needs here, or, where there is no MPI, as processes of this machine that talk
// over sockets (`stratplan ranks`). No shell is involved; the environment is inherited, so
// OMPI_MCA_* and the like pass through.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

struct Launch {
  int ranks = 1;
  int threads_per_rank = 1;
  std::vector<std::string> arguments;                    ///< of this program, its name left out
  std::optional<std::filesystem::path> standard_output;  ///< a file; nothing: inherited
  bool makes_checkpoints =
      false;        ///< SIGTERM and SIGUSR1 ask its ranks for a checkpoint, instead of ending them
  bool mpi = true;  ///< whether this program was built with it
  /// asked all the time while the job runs: whether to end it (exit code 6); nothing: never
  std::function<bool()> hangs{};
};

struct LaunchResult {
  /// a documented code (base/error.hpp) of the rank that failed, or 128 + N if signal N interrupted
  int exit_code = 0;
  bool interrupted = false;  ///< this process was asked to stop meanwhile
  int killed_by = 0;         ///< the signal that killed a rank, which makes exit code 6; 0: none
  Seconds wall{};
  double foreign_load =
      0;  ///< fraction of this machine's cores that other processes kept busy meanwhile
};

/// Whether so many ranks are started by mpirun: there are several, `mpi` (Launch), and it is
/// installed.
bool uses_mpirun(int ranks, bool mpi);
/// The command that launch() executes, for tests.
std::vector<std::string> launch_command(const Launch& launch);

/// Runs the job to its end. SIGINT and SIGTERM are passed on to it; to one that makes checkpoints
/// SIGUSR1 goes in the place of SIGTERM. Throws EnvironmentError if it cannot be started,
/// CommunicationError if mpirun itself was killed.
LaunchResult launch(const Launch& launch);

/// Whether launch() started this process, directly or under mpirun.
bool supervised();

}  // namespace stratplan
