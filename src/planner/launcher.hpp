#pragma once
// Starts this program again as the ranks of a job: directly for one rank, else under mpirun with the options that it needs here.
// No shell is involved; the environment is inherited, so OMPI_MCA_* and the like pass through.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"

namespace stratplan {

struct Launch {
  int ranks = 1;
  int threads_per_rank = 1;
  std::vector<std::string> arguments;                     ///< of this program, its name left out
  std::optional<std::filesystem::path> standard_output;   ///< a file; nothing: inherited
};

struct LaunchResult {
  int exit_code = 0;        ///< a documented code (base/error.hpp) of the rank that failed, or 128 + N after signal N
  bool interrupted = false; ///< this process was asked to stop meanwhile
  Seconds wall{};
  double foreign_load = 0;  ///< fraction of this machine's cores that other processes kept busy meanwhile
};

/// The command that launch() executes, for messages and tests. Throws EnvironmentError, naming the package, if mpirun is needed and missing.
std::vector<std::string> launch_command(const Launch& launch);

/// Runs the job to its end. SIGINT and SIGTERM are passed on to it. Throws EnvironmentError if it cannot be started.
LaunchResult launch(const Launch& launch);

/// Path of this very program.
std::string own_executable();
/// Where a program lies on $PATH.
std::optional<std::string> find_on_path(const std::string& program);
/// Cores that this process may use; hardware threads of one core count once, as mpirun counts its slots.
int usable_cores();

}  // namespace stratplan
