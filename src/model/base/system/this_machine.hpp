#pragma once
// The name of this machine, and its caches.
#include <string>

#include "model/base/units.hpp"

namespace stratplan {

/// Returns the processor's model name from /proc/cpuinfo ("AMD EPYC"), or "unknown".
std::string cpu_model();
/// Returns the name under which profiles and timings of this machine are kept: "AMD EPYC, 2 cores".
std::string this_machine();
/// Returns the size of the last level of the processor's caches, which its cores may share; 0 if
/// the system does not tell.
Bytes last_level_cache();

}  // namespace stratplan
