#pragma once
// Between measured tables and executed programs: which way each transfer goes. A machine with several ways has the fastest one's time in each point of its tables, and
// its name as the point's choice; so what a transfer costs needs no thought of ways, and what a plan says of them is read off the same points.
#include <span>
#include <string>

#include "model/cost/machine_profile.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program.hpp"

namespace stratplan {

/// What messages between two ranks are called in Ways::transfers: "messages" between ranks that meet at the innermost level, "messages one way" if one of the two
/// sends nothing, "messages across" between ranks that meet further out.
std::string message_key(int rank, int peer, Bytes out, Bytes in, const Topology& placement);

/// The ways of a table's points; from one to another it goes in the geometric middle between two points. Nothing if the points name none.
Ways::BySize ways_of(const SizeTable& table);

/// "mpi from 0 bytes, nccl from 4096 bytes"
std::string to_text(const Ways::BySize& ways);

/// Of the tables that these programs' transfers are priced by. Empty for machines that have one way only.
Ways fastest_ways(std::span<const Program> programs, const MachineProfile& machine);

/// Writes into the program's messages and collectives which way they go. Both ends of a message come to the same, and so do all members of a group.
void take_ways(Program& program, const Ways& ways);

}  // namespace stratplan
