#pragma once
// Which way each transfer of a program goes (Transports, execution.hpp).
#include <map>
#include <string>

#include "model/partition/execution.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// What a rank sends to a peer and receives from it in one exchange.
struct BytesBothWays {
  Bytes out{}, in{};
};
std::map<int, BytesBothWays> bytes_by_peer(const ExchangeOp& exchange);

/// What messages between two ranks are called in Transports::transfers: "messages" between ranks
/// that meet at the innermost level, "messages one way" if one of the two sends nothing, "messages
/// across" between ranks that meet further out.
std::string message_key(int rank, int peer, BytesBothWays bytes, const Topology& placement);
/// What a collective is called there: collective_key (group_shape.hpp).
std::string transfer_key(const CollectiveOp& collective, const Topology& placement);

/// "mpi from 0 bytes, nccl from 4096 bytes"
std::string to_text(const Transports::BySize& transports);

/// Writes into the program's messages and collectives which way they go. Both ends of a message
/// come to the same, and so do all members of a group.
void choose_transports(Program& program, const Transports& transports);

}  // namespace stratplan
