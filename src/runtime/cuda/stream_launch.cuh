#pragma once
// Launches kernels on a stream of a CUDA device. StreamLaunch is the device's counterpart of
// SerialLaunch, which runs the same kernels on the host.
#include <algorithm>
#include <cstdint>

#include "runtime/cuda/check.hpp"

namespace stratplan::cuda_kernels {

template <class Work>
__global__ void each(std::int64_t count, Work work) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    work(i);
}

/// Launches one thread per index. If there are more indices than the largest grid has threads, a
/// thread takes several indices.
struct StreamLaunch {
  cudaStream_t stream;

  template <class Work>
  void operator()(std::int64_t count, Work work) const {
    constexpr std::int64_t threads = 256, most_blocks = (std::int64_t{1} << 31) - 1;
    if (count <= 0) return;
    const std::int64_t blocks = std::min((count + threads - 1) / threads, most_blocks);
    each<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(count, work);
    check_cuda(cudaGetLastError(), "launching a kernel");
  }
};

}  // namespace stratplan::cuda_kernels
