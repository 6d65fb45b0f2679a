#pragma once
// Independent pieces of work on all cores.
#include <cstddef>
#include <functional>

namespace stratplan {

/// Calls `work` once for each index below `count`, from as many threads as there are cores. The
/// first exception, by index, is thrown when all are done.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace stratplan
