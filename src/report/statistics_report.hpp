#pragma once
// The price of batch normalization over sets of samples on several ranks, as text and JSON.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "planner/shared_statistics.hpp"

namespace stratplan {

/// "32 samples on up to 4 ranks, 3.840 ms of the step"
std::string statistics_text(const SharedStatistics& statistics);
/// Names the remedy, and what it changes.
inline constexpr const char* statistics_remedy =
    "per rank, as PyTorch's DistributedDataParallel takes them: --statistics local (or "
    "statistics_samples in the network file); the trained values then depend on the plan, and "
    "micro-batches are impossible";
/// {"samples", "ranks", "seconds"}
Json to_json(const SharedStatistics& statistics);

}  // namespace stratplan
