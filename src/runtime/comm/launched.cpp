// Finds the launcher and the rank from environment variables. This file is built with and without
// MPI.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/comm/mpi.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

/// Environment variables with a rank's number. In this order, they are set by this program's own
/// launcher, Open MPI, PMIx servers and MPICH's Hydra. The first variable that is set counts.
constexpr std::array<const char*, 4> rank_variables{"STRATPLAN_RANK", "OMPI_COMM_WORLD_RANK",
                                                    "PMIX_RANK", "PMI_RANK"};

}  // namespace

bool launched_by_mpi() {
  // Open MPI's mpirun sets the first variable. MPICH's Hydra and Slurm's PMI set the second. Any
  // PMIx server (prterun, srun --mpi=pmix) sets the third.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(variable)) return true;
  // srun sets this variable in every job step. An interactive shell may be a step with one task.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks && std::atoi(tasks) > 1;
}

bool built_with_open_mpi() {
  const PartInfo mpi = mpi_part();
  return mpi.built && mpi.description.starts_with("Open MPI");
}

int launched_rank() {
  for (const char* variable : rank_variables)
    if (const char* rank = std::getenv(variable)) return std::atoi(rank);
  return -1;
}

int launched_rank_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  std::vector<std::string> environment;
  for (std::string entry; std::getline(file, entry, '\0');) environment.push_back(entry);
  for (const std::string variable : rank_variables)
    for (const std::string& entry : environment)
      if (entry.starts_with(variable + "=")) return std::atoi(entry.c_str() + variable.size() + 1);
  return -1;
}

}  // namespace stratplan
