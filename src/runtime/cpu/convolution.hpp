#pragma once
#include "runtime/host_backend.hpp"

namespace stratplan::cpu {

/// Any of the three passes, by the best route that is not plain loops (route.hpp).
std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel);

}  // namespace stratplan::cpu
