#pragma once
// A convolution as a kernel of the CUDA backend. The kernel runs one of cuDNN's plans. Own kernels
// around the plan serve cropping, bias, activation and 16-bit gradients of weights.
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/cudnn/convolution_graph.hpp"

namespace stratplan::cudnn {

/// Prepares a convolution. `choice`: the name of one of execution_plans(), or empty for the first
/// plan. Throws EnvironmentError if cuDNN has no such plan.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic, const Target& target);
/// Returns the names of all plans, or an empty list if there are fewer than two plans.
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic,
                                             const Target& target);

/// Like the two functions above, but for the current device.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic);
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic);

}  // namespace stratplan::cudnn
