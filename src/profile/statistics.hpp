#pragma once
// Order statistics of samples.
#include <span>
#include <vector>

#include "model/cost/machine_profile.hpp"

namespace stratplan {

/// The value below which `fraction` of the samples lie, linear between neighbours. Requires samples and 0 <= fraction <= 1.
double quantile(std::span<const double> samples, double fraction);
double median(std::span<const double> samples);

/// How far the median of so many samples may be off, relative to it: its standard error if they are normal, 1.253 deviations / sqrt(n), with the
/// deviation from the middle half so that outliers do not count.
double relative_error_of_median(std::span<const double> samples);

/// Median and spread of each rank's samples, averaged over the ranks that have any: ranks that differ do not widen the spread.
Measurement summarize(const std::vector<std::vector<double>>& samples_of_ranks);

}  // namespace stratplan
