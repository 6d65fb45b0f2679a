#pragma once
#include <string>
#include <vector>

#include "runtime/device/host_backend.hpp"

namespace stratplan::cpu {

/// Prepares any of the three passes of a convolution. `choice`: the name of a route (route.hpp), or
/// empty for the first fast route in the order of the rule. If no route is fast, oneDNN's own
/// unfolding is used, then plain loops. Throws EnvironmentError if the named route does not apply
/// to the kernel.
std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel, const std::string& choice);
/// Returns the names of the fast routes of a kernel, the preferred one first. Returns nothing if
/// there is no choice.
std::vector<std::string> convolution_choices(const Kernel& kernel);

}  // namespace stratplan::cpu
