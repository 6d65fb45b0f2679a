#pragma once
// The choice of a transport for each transfer of a program (Transports in execution.hpp).
#include <map>
#include <string>

#include "model/partition/execution.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// The bytes that a rank sends to a peer and receives from it in one exchange.
struct BytesBothWays {
  Bytes out{}, in{};
};
std::map<int, BytesBothWays> bytes_by_peer(const ExchangeOp& exchange);

/// The key of messages between two ranks in Transports::transfers. It is "messages" if both ranks
/// are in one group of the innermost level and both send, "messages one way" if only one of them
/// sends, and "messages across" if the ranks are in different groups.
std::string message_key(int rank, int peer, BytesBothWays bytes, const Topology& placement);
/// The key of a collective in Transports::transfers: its collective_key() (group_shape.hpp).
std::string transfer_key(const CollectiveOp& collective, const Topology& placement);

/// "mpi from 0 bytes, nccl from 4096 bytes"
std::string to_text(const Transports::BySize& transports);

/// Sets the transport of each message and collective of the program. Both ends of a message choose
/// the same transport, and so do all members of a group.
void choose_transports(Program& program, const Transports& transports);

}  // namespace stratplan
