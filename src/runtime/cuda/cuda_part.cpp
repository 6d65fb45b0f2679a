// The description of the CUDA installation that `doctor` prints.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include "runtime/device/backend.hpp"

namespace stratplan {

PartInfo cuda_part() {
  int runtime = 0, nccl = 0, devices = 0;
  const bool has_runtime = cudaRuntimeGetVersion(&runtime) == cudaSuccess;
  const bool has_nccl = ncclGetVersion(&nccl) == ncclSuccess;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  const std::string device_text = found == cudaSuccess
                                      ? fmt::format("{} devices", devices)
                                      : fmt::format("no device: {}", cudaGetErrorString(found));
  const std::size_t cudnn = cudnnGetVersion();  // major * 10000 + minor * 100 + patch
  const std::map<std::string, std::string> versions{
      {"CUDA", has_runtime ? fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10) : "unknown"},
      {"cuDNN", fmt::format("{}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100)},
      {"NCCL",
       has_nccl ? fmt::format("{}.{}.{}", nccl / 10000, nccl / 100 % 100, nccl % 100) : "unknown"}};
  return {true,
          fmt::format("CUDA {}, cuDNN {}, NCCL {}, {}", versions.at("CUDA"), versions.at("cuDNN"),
                      versions.at("NCCL"), device_text),
          versions};
}

}  // namespace stratplan
