// The description of the CUDA installation that `doctor` prints.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include "runtime/cuda/library_version.hpp"
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
  const std::map<std::string, std::string> versions{
      {"CUDA", has_runtime ? fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10) : "unknown"},
      {"cuDNN", library_version(cudnnGetVersion())},
      {"NCCL", has_nccl ? library_version(static_cast<std::size_t>(nccl)) : "unknown"}};
  const std::string headers =
      cudnnGetVersion() == CUDNN_VERSION
          ? ""
          : fmt::format(", built with the headers of cuDNN {}", library_version(CUDNN_VERSION));
  return {true,
          fmt::format("CUDA {}, cuDNN {}, NCCL {}, {}{}", versions.at("CUDA"), versions.at("cuDNN"),
                      versions.at("NCCL"), device_text, headers),
          versions};
}

}  // namespace stratplan
