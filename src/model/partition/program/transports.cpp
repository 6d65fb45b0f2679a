#include "model/partition/program/transports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "model/base/assert.hpp"
#include "model/partition/program/group_shape.hpp"

namespace stratplan {
namespace {

/// Returns the names of all transports, in the same order on all ranks. Ranks process the
/// transports of an exchange in this order, whatever each rank sends.
std::vector<std::string> names_of(const Transports& transports) {
  std::set<std::string> names{std::string()};
  for (const auto& [transfer, by_size] : transports.transfers)
    for (const auto& [bytes, transport] : by_size) names.insert(transport);
  SP_ASSERT(names.size() - 1 <= std::numeric_limits<TransportId>::max(),
            "found {} transports, more than a TransportId can number", names.size());
  return {names.begin(), names.end()};
}

/// Returns the transport of a transfer of `bytes` bytes. Returns 0, the communicator's own
/// transport, if `transports` has no entry for the transfer.
TransportId find_transport(const Program& program, const Transports& transports,
                           const std::string& transfer, Bytes bytes) {
  const auto known = transports.transfers.find(transfer);
  if (known == transports.transfers.end()) return 0;
  const auto beyond = std::ranges::upper_bound(known->second, bytes, {},
                                               [](const auto& entry) { return entry.first; });
  SP_ASSERT(beyond != known->second.begin(), "the transports of {} do not begin at 0 bytes",
            transfer);
  return static_cast<TransportId>(std::ranges::find(program.transports, (beyond - 1)->second) -
                                  program.transports.begin());
}

}  // namespace

std::map<int, BytesBothWays> bytes_by_peer(const ExchangeOp& exchange) {
  std::map<int, BytesBothWays> peers;
  for (const Message& message : exchange.sends) peers[message.peer].out += message.bytes;
  for (const Message& message : exchange.receives) peers[message.peer].in += message.bytes;
  return peers;
}

std::string transfer_key(const CollectiveOp& collective, const Topology& placement) {
  return collective_key(collective.op, collective.type, shape_of(collective.group, placement),
                        placement.size());
}

std::string message_key(int rank, int peer, BytesBothWays bytes, const Topology& placement) {
  SP_ASSERT(!placement.empty(),
            "the plan has no placement, which a message from rank {} to rank {} needs", rank, peer);
  const int innermost = placement.size() == 1 ? std::numeric_limits<int>::max() : placement.back();
  if (rank / innermost != peer / innermost) return "messages across";
  return std::min(bytes.out, bytes.in).value > 0 ? "messages" : "messages one way";
}

std::string to_text(const Transports::BySize& transports) {
  std::string text;
  for (const auto& [bytes, transport] : transports)
    text += fmt::format("{}{} from {} bytes", text.empty() ? "" : ", ", transport, bytes.value);
  return text;
}

void choose_transports(Program& program, const Transports& transports) {
  if (transports.transfers.empty()) return;
  program.transports = names_of(transports);
  for (Op& op : program.ops) {
    if (auto* collective = std::get_if<CollectiveOp>(&op.body))
      collective->transport =
          find_transport(program, transports, transfer_key(*collective, transports.placement),
                         collective->bytes());
    auto* exchange = std::get_if<ExchangeOp>(&op.body);
    if (exchange == nullptr) continue;
    const std::map<int, BytesBothWays> peers = bytes_by_peer(*exchange);
    for (auto* messages : {&exchange->sends, &exchange->receives}) {
      for (Message& message : *messages) {
        const BytesBothWays bytes = peers.at(message.peer);
        message.transport =
            find_transport(program, transports,
                           message_key(program.rank, message.peer, bytes, transports.placement),
                           std::max(bytes.out, bytes.in));
      }
    }
  }
}

}  // namespace stratplan
