#include "runtime/cuda/check.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

void check_cuda(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  // Clears the error. Otherwise a caller that survives this error would see it again at its next
  // launch.
  cudaGetLastError();
  throw EnvironmentError(fmt::format("CUDA: {}: {}", doing, cudaGetErrorString(status)));
}

}  // namespace stratplan
