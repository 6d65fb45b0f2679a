#pragma once
#include "runtime/host_backend.hpp"

namespace stratplan::cpu {

/// Any of the three passes, by the best route that the library takes (route.hpp), else by own loops.
std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel);

}  // namespace stratplan::cpu
