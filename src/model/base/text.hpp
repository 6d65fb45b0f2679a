#pragma once
// Quantities as people read them.
#include <string>

#include "model/base/units.hpp"

namespace stratplan {

/// Milliseconds with no more than four significant digits, without the unit: "0.0123", "1.234",
/// "123.4", "12345".
std::string milliseconds(Seconds seconds);
/// "1.25 GiB", "310 MiB", "12 B".
std::string readable(Bytes bytes);

}  // namespace stratplan
