#pragma once
// A convolution as a kernel of the CUDA backend: one of cuDNN's plans, with own kernels around it
// for what cuDNN does not take.
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/cudnn/convolution_graph.hpp"

namespace stratplan::cudnn {

/// `choice`: the name of one of execution_plans, or empty for the first. Throws EnvironmentError if
/// there is none.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic, const Target& target);
/// The names of all plans; none if there is nothing to choose.
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic,
                                             const Target& target);

/// The same for the device that is there.
std::unique_ptr<CudaKernel> make_convolution(const Kernel& kernel, const std::string& choice,
                                             Arithmetic arithmetic);
std::vector<std::string> convolution_choices(const Kernel& kernel, Arithmetic arithmetic);

}  // namespace stratplan::cudnn
