// Linked instead of runtime/cpu/ if oneDNN was not found or was switched off.
#include "model/base/error.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

std::unique_ptr<Backend> make_cpu_backend(int) {
  throw EnvironmentError(
      "the cpu backend was not built: configure with -DSTRATPLAN_WITH_DNNL=ON (package "
      "libdnnl-dev)");
}

PartInfo cpu_part() { return {false, "not built: -DSTRATPLAN_WITH_DNNL=ON (package libdnnl-dev)"}; }

}  // namespace stratplan
