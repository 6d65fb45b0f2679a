// Preloaded into every process of a job. The rank that STOP_RANK names stops itself before its
// main() begins or, with STOP_IN=MPI_Init, in MPI_Init.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

bool is_named() {
  const char* named = std::getenv("STOP_RANK");
  for (const char* variable : {"STRATPLAN_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char* rank = std::getenv(variable)) return named && std::strcmp(rank, named) == 0;
  return false;
}

bool in_mpi_init() {
  const char* where = std::getenv("STOP_IN");
  return where && std::strcmp(where, "MPI_Init") == 0;
}

[[gnu::constructor]] void begin() {
  if (is_named() && !in_mpi_init()) std::raise(SIGSTOP);
}

}  // namespace

extern "C" {

[[gnu::weak]] int PMPI_Init_thread(int* count, char*** arguments, int wanted, int* provided);

int MPI_Init_thread(int* count, char*** arguments, int wanted, int* provided) {
  if (is_named() && in_mpi_init()) std::raise(SIGSTOP);
  return PMPI_Init_thread(count, arguments, wanted, provided);
}
}
