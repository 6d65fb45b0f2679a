// Linked instead of runtime/hdf5/ if HDF5 was not found or was switched off.
#include "model/base/error.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/io/array_file.hpp"

namespace stratplan {
namespace {

constexpr const char* not_built =
    "HDF5 support was not built: configure with -DSTRATPLAN_WITH_HDF5=ON (package libhdf5-dev), or "
    "keep the data in a folder with x.npy and y.npy";

}  // namespace

std::unique_ptr<ArrayFile> open_hdf5(const std::string&, const std::string&) {
  throw EnvironmentError(not_built);
}
std::unique_ptr<DataSetWriter> create_hdf5(const std::string&, const DataSetShape&) {
  throw EnvironmentError(not_built);
}

PartInfo hdf5_part() {
  return {false, "not built: -DSTRATPLAN_WITH_HDF5=ON (package libhdf5-dev)"};
}

}  // namespace stratplan
