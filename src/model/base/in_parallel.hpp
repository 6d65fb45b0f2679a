#pragma once
// Runs independent pieces of work on all cores.
#include <cstddef>
#include <functional>

namespace stratplan {

/// Calls `work` once for each index below `count`, from as many threads as there are cores. Waits
/// until all calls have ended. If calls threw exceptions, rethrows the one of the lowest index.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace stratplan
