#pragma once
// Starts this program again as the ranks of a job. A single rank is started directly. Several ranks
// are started under mpirun, with options that suit this machine and user. Without MPI they are
// started as processes of this machine that communicate over sockets (`stratplan ranks`). No shell
// is involved. The environment is inherited, so variables like OMPI_MCA_* reach the ranks.
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
  std::vector<std::string> arguments;  ///< arguments of this program, without the program's name
  /// file for the job's standard output; if empty, the job inherits the output of this process
  std::optional<std::filesystem::path> standard_output;
  /// SIGTERM, SIGUSR1 and the first SIGINT ask the ranks for a checkpoint instead of ending the job
  bool makes_checkpoints = false;
  /// Tells whether the job hangs; polled while the job runs. If it returns true, the job is ended
  /// with exit code 6. An empty function means that the job never hangs.
  std::function<bool()> hangs{};
  bool mpi = true;  ///< use mpirun if uses_mpirun(); false: never use it
};

struct LaunchResult {
  /// the documented code (model/base/error.hpp) of the rank that failed, or 128 + N if signal N
  /// interrupted the job
  int exit_code = 0;
  bool interrupted = false;  ///< this process was asked to stop during the job
  int killed_by = 0;         ///< signal that killed a rank (exit_code is then 6); 0: none did
  Seconds wall{};
  /// fraction of this machine's cores that other processes kept busy during the job
  double foreign_load = 0;
};

/// Whether mpirun starts a job of this many ranks: there are several, this program was built with
/// Open MPI, and mpirun is installed.
bool uses_mpirun(int ranks);
/// Returns the command that launch() executes. Exposed for tests.
std::vector<std::string> launch_command(const Launch& launch);

/// Runs the job to its end. SIGINT and SIGTERM are passed on to the job. A job that makes
/// checkpoints gets SIGUSR1 instead, and is ended at a second SIGINT. Throws EnvironmentError if
/// the job cannot be started, and CommunicationError if mpirun or `stratplan ranks` was killed.
LaunchResult launch(const Launch& launch);

/// Whether launch() started this process, directly or under mpirun.
bool supervised();

}  // namespace stratplan
