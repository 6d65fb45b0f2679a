#pragma once
// Quantities as texts for people.
#include <cstdint>
#include <string>

#include "model/base/units.hpp"

namespace stratplan {

/// Returns a number with four significant digits, at most six decimals and all digits before the
/// point: "0.01230", "1.234", "123.4", "12345".
std::string four_digits(double value);
/// Returns milliseconds without the unit, as four_digits().
std::string milliseconds(Seconds seconds);
/// Returns bytes with a binary unit: "1.25 GiB", "310 MiB", "12 B".
std::string readable(Bytes bytes);
/// Returns whole MiB, rounded up, so that the printed amount is enough: "311 MiB".
std::string mebibytes(Bytes bytes);
/// Returns a limit without rounding, in the largest unit that divides it: "40 B", "500 MB", "16
/// GiB". A limit that needs many digits is rounded as in readable().
std::string exact(Bytes bytes);
/// "1 sample", "2 samples". `noun` is one whose plural ends in s.
std::string counted(std::int64_t count, const std::string& noun);

}  // namespace stratplan
