// Starts and ends MPI.
#define OMPI_SKIP_MPICXX 1  // only the C interface is used
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include <cstdlib>
#include <exception>
#include <string>

#include "model/base/error.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

bool running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

}  // namespace

MpiSession::MpiSession() : exceptions_(std::uncaught_exceptions()) {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    throw EnvironmentError("MPI cannot start: MPI_Init_thread failed");
  if (provided < MPI_THREAD_SERIALIZED)
    throw EnvironmentError("this MPI library does not support threads (MPI_THREAD_SERIALIZED)");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

MpiSession::~MpiSession() {
  // MPI_Finalize would wait for ranks that may be waiting for this rank.
  if (std::uncaught_exceptions() > exceptions_)
    abort_all_ranks(static_cast<int>(ExitCode::Communication));
  MPI_Finalize();
}

std::optional<bool> mpi_takes_device_memory() {
#if defined(OPEN_MPI) && defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#else
  // Older relatives of MPICH have no such query. Users enable device addresses by environment
  // variables, which the library reads when it starts.
  for (const char* name : {"MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA"})
    if (const char* value = std::getenv(name); value != nullptr) return std::string(value) == "1";
  return std::nullopt;
#endif
}

void abort_all_ranks(int exit_code) noexcept {
  if (running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

PartInfo mpi_part() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string text(version, static_cast<std::size_t>(length));
  return {true, text.substr(0, text.find_first_of(",\n"))};
}

}  // namespace stratplan
