// Linked where CUDA, cuDNN and NCCL were not found or not wanted.
#include "model/base/error.hpp"
#include "runtime/backend.hpp"

namespace stratplan {

std::unique_ptr<Backend> make_cuda_backend() {
  throw EnvironmentError("the cuda backend was not built: configure with -DSTRATPLAN_WITH_CUDA=ON (CUDA toolkit, cuDNN and NCCL)");
}

PartInfo cuda_part() { return {false, "not built: -DSTRATPLAN_WITH_CUDA=ON (CUDA toolkit, cuDNN and NCCL)"}; }

}  // namespace stratplan
