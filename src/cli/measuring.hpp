#pragma once
// Measuring what plans lack: the ranks are this program again (`stratplan profile --request`), the result is the local profile.
#include <vector>

#include "planner/autotune.hpp"

namespace stratplan {

/// Says each phase on standard error and measures under mpirun.
AutotuneHooks make_hooks(int ranks, const std::string& backend);

}  // namespace stratplan
