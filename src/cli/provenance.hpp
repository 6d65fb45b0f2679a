#pragma once
// Where a file comes from: what every file that this program writes says of itself.
#include <string>
#include <vector>

#include "model/base/system/provenance.hpp"

namespace stratplan {

/// "stratplan 0.1.0 (Release, GNU 12.2.0)"
std::string version_text();
/// Program, version, compiler, command, date (UTC), host, device, operating system and library
/// versions.
Provenance make_provenance(const std::vector<std::string>& command_line);
}  // namespace stratplan
