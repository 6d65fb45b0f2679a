#pragma once
// Provenance: where a file comes from, as stated in every file that this program writes.
#include <string>
#include <vector>

#include "model/base/system/provenance.hpp"

namespace stratplan {

/// Returns a text such as "stratplan 0.1.0 (Release, GNU 12.2.0)".
std::string version_text();
/// Returns program, version, compiler, command, date (UTC), host, device, operating system and
/// library versions.
Provenance make_provenance(const std::vector<std::string>& command_line);
}  // namespace stratplan
