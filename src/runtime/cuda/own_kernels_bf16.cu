// Own kernels on activations that are stored as Bfloat16.
#include "runtime/cuda/kernels/support/run.hpp"
#include "runtime/cuda/stream_launch.cuh"

namespace stratplan::cuda_kernels {

template bool run_on<Bfloat16>(const Kernel&, const KernelCall&, const StreamLaunch&);

}  // namespace stratplan::cuda_kernels
