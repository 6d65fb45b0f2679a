#pragma once
// The traffic of a program, as its ops state it and the model prices it.
#include "model/partition/program/program.hpp"
#include "runtime/comm/counting.hpp"

namespace stratplan::test {

/// Returns what the program's ops send, receive and sum up in one step.
inline CommunicationCounts priced_traffic(const Program& program) {
  CommunicationCounts counts;
  for (const Op& op : program.ops) {
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.body)) {
      counts.messages += std::ssize(exchange->sends);
      counts.received_messages += std::ssize(exchange->receives);
      for (const Message& message : exchange->sends) counts.message_bytes += message.bytes.value;
      for (const Message& message : exchange->receives)
        counts.received_bytes += message.bytes.value;
    } else if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
      counts.collectives.emplace_back(collective->op, collective->bytes().value);
    }
  }
  return counts;
}

}  // namespace stratplan::test
