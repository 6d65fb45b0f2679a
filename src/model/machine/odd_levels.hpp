#pragma once
// Finds numbers of a machine's links that are possible, but suggest a wrong unit or a wrong order
// of the levels.
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// Returns one line for each oddity, with its JSON pointer. Oddities are a latency above 1 ms, a
/// bandwidth below 100 MB/s, and a level that is faster than the level inside it.
///   levels  gpu (80 GB/s, 1.9 us), node (24 GB/s, 4 us)
///   result  at /levels/0: gpu is faster than node, the level inside it; expected levels from the
///           outermost to the innermost
std::vector<std::string> odd_levels(const MachineProfile& machine);

}  // namespace stratplan
