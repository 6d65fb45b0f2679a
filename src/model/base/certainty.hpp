#pragma once
// How sure a predicted number is: what it rests on, its range, and the errors that it shares with
// other predictions.
//
// An error is a factor, measured / predicted. Its logarithm has mean 0 and a standard deviation. A
// time is a sum of parts, and each part is multiplied by errors: that of its device, of its family
// of kernels, its own. To first order, the logarithm of the time's error is the sum of these
// logarithms, each weighted by the share of the time that it multiplies. Errors of different
// sources are independent, so
//     variance of ln(time) = sum over sources of (share * deviation)^2.
// Two predictions share the errors of the same sources. In their ratio these cancel as far as their
// shares are equal:
//     variance of ln(a / b) = sum over sources of (share in a - share in b)^2 * deviation^2.
#include <map>
#include <string>
#include <string_view>

#include "model/base/json/json_fwd.hpp"

namespace stratplan {

/// What a number rests on, the surest first: a measurement of exactly this; measurements of similar
/// sizes; rates of data sheets, with constants that were fitted to measurements of such devices;
/// rates alone.
enum class Tier : int { Measured, Interpolated, Calibrated, DataSheet };
inline constexpr int tier_count = static_cast<int>(Tier::DataSheet) + 1;
/// Returns "measured", "interpolated", "calibrated" or "data sheet".
std::string_view name_of(Tier tier);
/// The inverse of name_of().
Tier tier_of(std::string_view name);

/// Holds the true value with a probability of 80 %: its 10th and 90th percentile.
struct Range {
  double low = 0, high = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
inline bool is_within(double value, const Range& range) {
  return range.low <= value && value <= range.high;
}
/// The range of a value whose logarithm has this standard deviation.
Range range_of(double value, double deviation);
/// Returns {"low": .., "high": ..}. In every document, the range of the number KEY stands beside it
/// as KEY_range, in the same unit.
Json to_json(const Range& range);
/// The inverse of to_json().
Range range_from(const Json& json);

/// What an error belongs to.
enum class ErrorKind : int {
  Drift,     ///< a measured machine: it runs at another speed than when it was measured
  Device,    ///< all estimated kernels of a device under one software
  Family,    ///< the estimated kernels of one family
  Kernel,    ///< one kernel, wherever it occurs
  Link,      ///< all estimated transfers across one level of a machine
  Transfer,  ///< one kind and size of transfer, wherever it occurs
  Host,      ///< issuing ops
  Input,     ///< reading samples
};
struct ErrorSource {
  ErrorKind kind = ErrorKind::Drift;
  std::string name;  ///< for example "conv_1x1" of a family, or Kernel::key() of a kernel
  friend auto operator<=>(const ErrorSource&, const ErrorSource&) = default;
};
/// How much an error counts in a time.
struct ErrorShare {
  double share = 0;      ///< the part of the time that the error multiplies
  double deviation = 0;  ///< standard deviation of the error's logarithm
  friend bool operator==(const ErrorShare&, const ErrorShare&) = default;
};
/// The errors of a predicted time.
using Sensitivity = std::map<ErrorSource, ErrorShare>;

/// Standard deviation of the logarithm of a time.
double deviation_of(const Sensitivity& time);
/// Standard deviation of the logarithm of a / b.
double deviation_of_ratio(const Sensitivity& a, const Sensitivity& b);
/// The kind of error that contributes most to the variance of a / b.
ErrorKind largest_error(const Sensitivity& a, const Sensitivity& b);

/// The probability that a value is less than another whose predicted value is `ratio` times as
/// large. `deviation`: the standard deviation of the logarithm of their ratio. Without errors,
/// equal values give 1/2.
double probability_less(double ratio, double deviation);
/// Whether two such values cannot be told apart: neither is less with a probability of 0.8.
bool is_tie(double ratio, double deviation);

}  // namespace stratplan
