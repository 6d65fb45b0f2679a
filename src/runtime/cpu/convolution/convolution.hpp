#pragma once
#include <string>
#include <vector>

#include "runtime/device/host_backend.hpp"

namespace stratplan::cpu {

/// Prepares any of the three passes of a convolution. `choice` is the name of a route (route.hpp).
/// If `choice` is empty, the first fast route is used, in the order of routes(), then among the
/// other routes. If no route is fast, oneDNN's own unfolding is used, else plain loops. Throws
/// EnvironmentError if the named route does not apply to the kernel.
std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel, const std::string& choice);
/// Returns the names of the fast routes of a kernel except Route::Planar, the preferred route
/// first. Returns an empty list if there are fewer than two such routes.
std::vector<std::string> convolution_choices(const Kernel& kernel);

}  // namespace stratplan::cpu
