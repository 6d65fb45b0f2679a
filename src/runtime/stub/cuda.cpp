// Linked instead of runtime/cuda/ if CUDA, cuDNN and NCCL were not found or were switched off.
#include "model/base/error.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/offline_device.hpp"

namespace stratplan {
namespace {

constexpr const char* not_built =
    "the cuda backend was not built: configure with -DSTRATPLAN_WITH_CUDA=ON; this needs the CUDA "
    "toolkit, cuDNN and NCCL";

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(bool) { throw EnvironmentError(not_built); }

std::vector<std::string> cuda_devices() { return {}; }
void use_cuda_device(int) { throw EnvironmentError(not_built); }

PartInfo cuda_part() {
  return {false, "not built: -DSTRATPLAN_WITH_CUDA=ON needs the CUDA toolkit, cuDNN and NCCL"};
}

std::optional<OfflineDevice> offline_device(const std::string&, bool) { return {}; }

}  // namespace stratplan
