// Lists the CUDA devices and selects one.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "runtime/cuda/check.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

std::vector<std::string> cuda_devices() {
  int count = 0;
  std::vector<std::string> names;
  if (cudaGetDeviceCount(&count) != cudaSuccess)
    cudaGetLastError();  // clears the error that there is no driver or no device
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device), "asking for a device's name");
    const auto* id = reinterpret_cast<const unsigned char*>(properties.uuid.bytes);
    names.push_back(
        fmt::format("{:02x}", fmt::join(std::span(id, sizeof(properties.uuid.bytes)), "")));
  }
  return names;
}

void use_cuda_device(int device) { check_cuda(cudaSetDevice(device), "choosing a device"); }

}  // namespace stratplan
