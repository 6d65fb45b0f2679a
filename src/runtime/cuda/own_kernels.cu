// Compiles this project's kernels (kernels/) for CUDA devices, for all stored types of activations.
// One translation unit holds all types. One unit per type would take 1.7 times the processor time
// to compile, because each unit would read the headers anew.
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/kernels/support/run.hpp"
#include "runtime/cuda/stream_launch.cuh"

namespace stratplan {

namespace {

class OwnKernel : public CudaKernel {
 public:
  explicit OwnKernel(const Kernel& kernel)
      : kernel_(kernel), workspace_(cuda_kernels::workspace(kernel)) {}
  Bytes workspace() const override { return workspace_; }
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call, cudaStream_t stream) override {
    cuda_kernels::run(kernel_, call, cuda_kernels::StreamLaunch{stream});
  }

 private:
  Kernel kernel_;
  Bytes workspace_;
};

}  // namespace

std::unique_ptr<CudaKernel> make_own_kernel(const Kernel& kernel) {
  return std::make_unique<OwnKernel>(kernel);
}

}  // namespace stratplan
