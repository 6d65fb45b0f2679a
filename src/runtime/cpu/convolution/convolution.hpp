#pragma once
#include <string>
#include <vector>

#include "runtime/device/host_backend.hpp"

namespace stratplan::cpu {

/// Any of the three passes, by the route of that name (route.hpp); if empty, by the preferred one
/// that the library takes, else by own loops.
std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel, const std::string& choice);
/// The routes that are not plain loops, the preferred first; none if there is only one.
std::vector<std::string> convolution_choices(const Kernel& kernel);

}  // namespace stratplan::cpu
