// Linked instead of runtime/comm/mpi/ if MPI was not found or was switched off.
#include <cstdlib>

#include "model/base/error.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

constexpr const char* not_built =
    "stratplan was built without MPI: configure with -DSTRATPLAN_WITH_MPI=ON";

}  // namespace

MpiSession::MpiSession() : exceptions_(0) { throw EnvironmentError(not_built); }
MpiSession::~MpiSession() = default;

std::unique_ptr<Communicator> make_mpi_communicator() { throw EnvironmentError(not_built); }

std::optional<bool> mpi_takes_device_memory() { return false; }

void abort_all_ranks(int exit_code) noexcept { std::_Exit(exit_code); }

PartInfo mpi_part() { return {false, not_built}; }

}  // namespace stratplan
