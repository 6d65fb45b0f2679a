#pragma once
// Derives each transfer's transport from the measured tables. On a machine with several transports,
// each point of a table holds the time of the fastest transport, and that transport's name as the
// point's choice. So a transfer is priced without regard to transports, and the plan takes its
// transports from the same points.
#include <span>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/transports.hpp"

namespace stratplan {

/// The transports by size, from a table's points. The switch from one transport to the next is at
/// the geometric mean of the two points' sizes. Empty if the points name no transport.
Transports::BySize transports_of(const SizeTable& table);

/// The transports of these programs' transfers, from the measured tables. Empty for machines with
/// only one transport.
Transports fastest_transports(std::span<const Program> programs, const MachineProfile& machine);

}  // namespace stratplan
