#include "runtime/cuda/check.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

void check_cuda(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  // or else the next launch, at which it is asked for, would be taken for the failure, if this one
  // is survived
  cudaGetLastError();
  throw EnvironmentError(fmt::format("CUDA: {}: {}", doing, cudaGetErrorString(status)));
}

}  // namespace stratplan
