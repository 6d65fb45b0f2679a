#pragma once
// The cost of batch normalization whose sets of samples lie on several ranks, as text and JSON.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "planner/shared_statistics.hpp"

namespace stratplan {

/// Returns a text such as "each set of 32 samples lies on up to 4 ranks; the sums add 3.840 ms to
/// the step".
std::string statistics_text(const SharedStatistics& statistics);
/// Names the option that avoids these sums, and what it changes.
inline constexpr const char* statistics_remedy =
    "--statistics local (in the network file: \"statistics_samples\": \"local\") takes the "
    "statistics per rank, as PyTorch's DistributedDataParallel does; the trained values then "
    "depend on the plan, and micro-batches are impossible";
/// {"samples", "ranks", "seconds"}
Json to_json(const SharedStatistics& statistics);

}  // namespace stratplan
