#pragma once
// Between measured tables and executed programs: which way each transfer goes. A machine with
// several ways has the fastest one's time in each point of its tables, and its name as the point's
// choice; so what a transfer costs needs no thought of ways, and what a plan says of them is read
// off the same points.
#include <span>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/transports.hpp"

namespace stratplan {

/// The ways of a table's points; from one to another it goes in the geometric middle between two
/// points. Nothing if the points name none.
Transports::BySize transports_of(const SizeTable& table);

/// Of the tables that these programs' transfers are priced by. Empty for machines that have one way
/// only.
Transports fastest_transports(std::span<const Program> programs, const MachineProfile& machine);

}  // namespace stratplan
