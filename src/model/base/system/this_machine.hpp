#pragma once
// The name of this machine.
#include <string>

namespace stratplan {

/// Returns the processor's model name from /proc/cpuinfo ("AMD EPYC"), or "unknown".
std::string cpu_model();
/// Returns the name under which profiles and timings of this machine are kept: "AMD EPYC, 2 cores".
std::string this_machine();

}  // namespace stratplan
