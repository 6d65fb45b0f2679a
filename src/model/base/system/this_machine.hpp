#pragma once
// What this machine calls itself.
#include <string>

namespace stratplan {

/// "AMD EPYC", as the processor calls itself.
std::string cpu_model();
/// What measured profiles of this machine and timings on it are named by: "AMD EPYC, 2 cores".
std::string this_machine();

}  // namespace stratplan
