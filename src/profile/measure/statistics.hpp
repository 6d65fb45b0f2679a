#pragma once
// Summaries of the samples of several ranks.
#include <vector>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// Returns the median and spread of each rank's samples, averaged over the ranks that have any.
/// Differences between ranks do not widen the spread. Requires that at least one rank has samples.
Measurement summarize(const std::vector<std::vector<double>>& samples_of_ranks);

}  // namespace stratplan
