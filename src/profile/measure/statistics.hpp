#pragma once
// What samples of several ranks come to.
#include <vector>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// Median and spread of each rank's samples, averaged over the ranks that have any: ranks that
/// differ do not widen the spread.
Measurement summarize(const std::vector<std::vector<double>>& samples_of_ranks);

}  // namespace stratplan
