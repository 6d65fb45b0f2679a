#pragma once
// Order statistics of samples.
#include <span>

namespace stratplan {

/// The value below which `fraction` of the samples lie, linear between neighbours. Requires
/// samples and 0 <= fraction <= 1.
double quantile(std::span<const double> samples, double fraction);
double median(std::span<const double> samples);

/// How far the median may be off, relative to it: its standard error if the samples are normal,
/// 1.253 deviations / sqrt(n), with the deviation from the middle half so that outliers do not
/// count.
double relative_error_of_median(std::span<const double> samples);

}  // namespace stratplan
