#pragma once
// A convolution as a kernel of the CUDA backend: one of cuDNN's plans, with own kernels around the
// plan for cropping, bias, activation and 16-bit gradients of weights.
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/cudnn/convolution_graph.hpp"

namespace stratplan::cudnn {

/// Prepares a convolution. `choice`: the name of one of execution_plans(), or empty for the first
/// plan. Throws EnvironmentError if cuDNN has no such plan.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic, const Target& target);
/// Returns the names of all plans; empty if there are fewer than two.
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic,
                                             const Target& target);

/// The two functions above for the current device.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic);
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic);

}  // namespace stratplan::cudnn
