#pragma once
// Every return of a CUDA function is looked at. (No fmt here: nvcc does not take it.)
#include <cuda_runtime_api.h>

namespace stratplan {

/// Throws EnvironmentError: "CUDA: allocating memory: out of memory".
void check_cuda(cudaError_t status, const char* doing);

}  // namespace stratplan
