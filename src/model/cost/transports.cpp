#include "model/cost/transports.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/cost/collective_cost.hpp"

namespace stratplan {
namespace {

const SizeTable* find(const std::map<std::string, SizeTable>& tables, const std::string& key) {
  const auto table = tables.find(key);
  return table == tables.end() ? nullptr : &table->second;
}

/// The measured table for transfers with this key of Transports::transfers; null if there is none.
const SizeTable* table_of(const std::string& key, const MachineProfile& machine) {
  if (key == "messages") return &machine.both_ways;
  if (key == "messages one way") return &machine.one_way;
  if (key == "messages across") return find(machine.exchanges, "1 pair per node across");
  return find(machine.collectives, key);
}

}  // namespace

Transports::BySize transports_of(const SizeTable& table) {
  Transports::BySize transports;
  Bytes before{};
  for (const auto& [bytes, measured] : table.points) {
    if (!measured.choice.empty() &&
        (transports.empty() || transports.back().second != measured.choice)) {
      const double middle =
          std::sqrt(static_cast<double>(before.value) * static_cast<double>(bytes.value));
      transports.emplace_back(transports.empty() ? Bytes{0} : Bytes{std::llround(middle)},
                              measured.choice);
    }
    before = bytes;
  }
  return transports;
}

Transports fastest_transports(std::span<const Program> programs, const MachineProfile& machine) {
  if (programs.empty()) return {};
  const Topology placement = machine.placement(programs.front().ranks);
  std::set<std::string> keys;
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
        keys.insert(transfer_key(*collective, placement));
      if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
        for (const auto& [peer, bytes] : bytes_by_peer(*exchange))
          keys.insert(message_key(program.rank, peer, bytes, placement));
    }
  }
  Transports transports;
  for (const std::string& key : keys) {
    const SizeTable* table = table_of(key, machine);
    if (table == nullptr) continue;
    if (Transports::BySize by_size = transports_of(*table); !by_size.empty())
      transports.transfers[key] = std::move(by_size);
  }
  if (!transports.transfers.empty()) transports.placement = placement;
  return transports;
}

}  // namespace stratplan
