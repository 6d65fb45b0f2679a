// Knowing one's launcher takes the environment alone, so this part is built with and without MPI.
#include <cstdlib>
#include <string>

#include "runtime/comm/mpi.hpp"

namespace stratplan {

bool launched_by_mpi() {
  // Set by: Open MPI's mpirun; MPICH's Hydra and Slurm's PMI; any PMIx server (prterun, srun --mpi=pmix).
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(variable)) return true;
  // srun sets it in every job step; an interactive shell may itself be a step of one task.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks && std::atoi(tasks) > 1;
}

int launched_rank() {
  for (const char* variable : {"STRATPLAN_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(variable)) return std::atoi(rank);
  return -1;
}

}  // namespace stratplan
