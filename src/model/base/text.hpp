#pragma once
// Quantities as texts for people.
#include <string>

#include "model/base/units.hpp"

namespace stratplan {

/// Returns milliseconds without the unit, with four significant digits, at most six decimals and
/// all digits before the point: "0.01230", "1.234", "123.4", "12345".
std::string milliseconds(Seconds seconds);
/// Returns bytes with a binary unit: "1.25 GiB", "310 MiB", "12 B".
std::string readable(Bytes bytes);
/// Returns whole MiB, rounded up, so that the printed amount is enough: "311 MiB".
std::string mebibytes(Bytes bytes);

}  // namespace stratplan
