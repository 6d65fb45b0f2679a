#pragma once
// Measuring what plans lack: the ranks are this program again (`stratplan profile --request`), the result is the local profile.
#include <functional>
#include <string>
#include <vector>

#include "planner/autotune.hpp"

namespace stratplan {

/// Says each phase on standard error and measures on the ranks that launch() starts.
AutotuneHooks make_hooks(int ranks, const std::string& backend);

/// MachineProfile::unmeasured_workspace of this machine: asks the backend that would run the kernel.
std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads);

/// How the host memory of the ranks, of which this is one, is connected: "Open MPI v4.1.4", "sockets"; empty for a single one.
std::string way_between_hosts();
/// What was measured between ranks that were connected otherwise does not serve.
void forget_other_ways(MachineProfile& machine, const std::string& way);

}  // namespace stratplan
