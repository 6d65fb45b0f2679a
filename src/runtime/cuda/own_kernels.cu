// Own kernels on a CUDA device.
#include <algorithm>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/kernels/support/run.hpp"

namespace stratplan {
namespace {

template <class Work>
__global__ void each(std::int64_t count, Work work) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    work(i);
}

/// A thread for each index, as far as there are blocks.
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

class OwnKernel : public CudaKernel {
 public:
  explicit OwnKernel(const Kernel& kernel) : kernel_(kernel), workspace_(own::workspace(kernel)) {}
  Bytes workspace() const override { return workspace_; }
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call, cudaStream_t stream) override {
    own::run(kernel_, call, StreamLaunch{stream});
  }

 private:
  Kernel kernel_;
  Bytes workspace_;
};

template <class T>
class WideningKernel : public CudaKernel {
 public:
  explicit WideningKernel(std::int64_t elements) : elements_(elements) {}
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call, cudaStream_t stream) override {
    own::convert_all<T, float>(elements_, call, StreamLaunch{stream});
  }

 private:
  std::int64_t elements_;
};

}  // namespace

std::unique_ptr<CudaKernel> make_widening(DataType from, std::int64_t elements) {
  if (from == DataType::F16) return std::make_unique<WideningKernel<Float16>>(elements);
  return std::make_unique<WideningKernel<Bfloat16>>(elements);
}

std::unique_ptr<CudaKernel> make_own_kernel(const Kernel& kernel) {
  return std::make_unique<OwnKernel>(kernel);
}

}  // namespace stratplan
