#pragma once
// The latency and bandwidth of a level, from measured messages.
#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// Sets a level's latency and bandwidth from a table of one-way messages. Requires at least one
/// point. The bandwidth stays if larger messages take no longer.
void describe_link(Level& level, const SizeTable& one_way);

}  // namespace stratplan
