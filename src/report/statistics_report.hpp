#pragma once
// The cost of batch normalization whose sets of samples lie on several ranks, as text and JSON.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "planner/shared_statistics.hpp"

namespace stratplan {

/// Returns a text such as "32 samples on up to 4 ranks, 3.840 ms of the step".
std::string statistics_text(const SharedStatistics& statistics);
/// Names the option that avoids these sums, and what it changes.
inline constexpr const char* statistics_remedy =
    "to take them per rank, as PyTorch's DistributedDataParallel does: --statistics local (or "
    "statistics_samples in the network file); the trained values then depend on the plan, and "
    "micro-batches are impossible";
/// {"samples", "ranks", "seconds"}
Json to_json(const SharedStatistics& statistics);

}  // namespace stratplan
