#pragma once
// Checks the status that a CUDA function returned. This header does not include fmt, which nvcc
// cannot compile.
#include <cuda_runtime_api.h>

namespace stratplan {

/// Throws EnvironmentError if `status` is a failure. A message is "CUDA: allocating memory: out of
/// memory", where `doing` is "allocating memory".
void check_cuda(cudaError_t status, const char* doing);

}  // namespace stratplan
