#pragma once
// Measuring what plans lack: the ranks are this program again (`stratplan profile --request`), the result is the local profile.
#include <functional>
#include <string>
#include <vector>

#include "planner/autotune.hpp"

namespace stratplan {

/// Says each phase on standard error and measures under mpirun.
AutotuneHooks make_hooks(int ranks, const std::string& backend);

/// MachineProfile::unmeasured_workspace of this machine: asks the backend that would run the kernel.
std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads);

}  // namespace stratplan
