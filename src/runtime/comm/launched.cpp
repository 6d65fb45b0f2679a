// Knowing one's launcher takes the environment alone, so this part is built with and without MPI.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/comm/mpi.hpp"

namespace stratplan {
namespace {

/// Variables that this program's own launcher, Open MPI, PMIx servers and MPICH's Hydra set to a
/// rank's number; the first that is set counts.
constexpr std::array<const char*, 4> rank_variables{"STRATPLAN_RANK", "OMPI_COMM_WORLD_RANK",
                                                    "PMIX_RANK", "PMI_RANK"};

}  // namespace

bool launched_by_mpi() {
  // Set by: Open MPI's mpirun; MPICH's Hydra and Slurm's PMI; any PMIx server (prterun, srun
  // --mpi=pmix).
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(variable)) return true;
  // srun sets it in every job step; an interactive shell may itself be a step of one task.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks && std::atoi(tasks) > 1;
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
