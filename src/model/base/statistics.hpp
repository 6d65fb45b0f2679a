#pragma once
// Order statistics of samples.
#include <span>

namespace stratplan {

/// Returns the value below which `fraction` of the samples lie, interpolated linearly between
/// neighbours. Requires at least one sample and 0 <= fraction <= 1.
double quantile(std::span<const double> samples, double fraction);
double median(std::span<const double> samples);

/// Returns the standard error of the median, relative to the median; 0 if the median is not
/// positive. For n normal samples the error is 1.253 deviations / sqrt(n). The deviation is taken
/// as the interquartile range / 1.349, so that outliers do not count.
double relative_error_of_median(std::span<const double> samples);

/// Returns the expected maximum of `count` independent standard normal variables, by Blom's
/// approximation: the quantile at (count - 0.375) / (count + 0.25). It is at most 0.03 off. Source:
/// G. Blom, Statistical Estimates and Transformed Beta-Variables, Wiley, 1958. Requires count >= 1.
double expected_maximum(int count);

}  // namespace stratplan
