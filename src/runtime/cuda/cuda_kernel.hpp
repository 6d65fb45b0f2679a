#pragma once
// A kernel that is prepared for a CUDA device.
#include <cuda_runtime_api.h>

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan {

class CudaKernel : public PreparedKernel {
 public:
  /// Enqueues the kernel on the stream, and does not wait. All addresses are in device memory.
  virtual void run(const KernelCall& call, cudaStream_t stream) = 0;
};

/// Prepares one of this project's kernels (own_kernels.cu). Requires a kernel of any kind but a
/// convolution.
std::unique_ptr<CudaKernel> make_own_kernel(const Kernel& kernel);

}  // namespace stratplan
