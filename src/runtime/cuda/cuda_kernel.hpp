#pragma once
// A kernel made ready for a CUDA device.
#include <cuda_runtime_api.h>

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan {

class CudaKernel : public PreparedKernel {
 public:
  /// Enqueues on the stream; nothing waits. All addresses are the device's.
  virtual void run(const KernelCall& call, cudaStream_t stream) = 0;
};

/// Of all kinds but convolutions (own_kernels.cu).
std::unique_ptr<CudaKernel> make_own_kernel(const Kernel& kernel);

/// Numbers of a narrow type to floats: what is no step of any program, but part of a convolution.
std::unique_ptr<CudaKernel> make_widening(DataType from, std::int64_t elements);

}  // namespace stratplan
