#include "model/cost/ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"

namespace stratplan {
namespace {

struct Traffic {
  Bytes out{}, in{};
};

/// By peer.
std::map<int, Traffic> traffic_of(const ExchangeStep& exchange) {
  std::map<int, Traffic> peers;
  for (const Message& message : exchange.sends) peers[message.peer].out += message.bytes;
  for (const Message& message : exchange.receives) peers[message.peer].in += message.bytes;
  return peers;
}

std::string key_of(const CollectiveStep& collective, const Topology& placement) {
  return collective_key(collective.op, collective.type, shape_of(collective.group, placement),
                        placement.size());
}

const SizeTable* find(const std::map<std::string, SizeTable>& tables, const std::string& key) {
  const auto table = tables.find(key);
  return table == tables.end() ? nullptr : &table->second;
}

/// The table by which transfers of this key are priced; null: they are estimated.
const SizeTable* table_of(const std::string& key, const MachineProfile& machine) {
  if (key == "messages") return &machine.both_ways;
  if (key == "messages one way") return &machine.one_way;
  if (key == "messages across") return find(machine.exchanges, "1 pair per node across");
  return find(machine.collectives, key);
}

/// Names in the same order on all ranks, whatever each of them sends: they go through an exchange's ways in that order.
std::vector<std::string> names_of(const Ways& ways) {
  std::set<std::string> names{std::string()};
  for (const auto& [transfer, by_size] : ways.transfers)
    for (const auto& [bytes, way] : by_size) names.insert(way);
  SP_ASSERT(names.size() - 1 <= std::numeric_limits<WayId>::max(), "{} ways", names.size());
  return {names.begin(), names.end()};
}

/// 0 if nothing is said of such a transfer.
WayId find_way(const Program& program, const Ways& ways, const std::string& transfer, Bytes bytes) {
  const auto known = ways.transfers.find(transfer);
  if (known == ways.transfers.end()) return 0;
  const auto beyond = std::ranges::upper_bound(known->second, bytes, {},
                                               [](const auto& entry) { return entry.first; });
  SP_ASSERT(beyond != known->second.begin(), "{}: ways do not begin at 0 bytes", transfer);
  return static_cast<WayId>(std::ranges::find(program.ways, (beyond - 1)->second) -
                            program.ways.begin());
}

}  // namespace

std::string message_key(int rank, int peer, Bytes out, Bytes in, const Topology& placement) {
  SP_ASSERT(!placement.empty());
  const int innermost = placement.size() == 1 ? std::numeric_limits<int>::max() : placement.back();
  if (rank / innermost != peer / innermost) return "messages across";
  return std::min(out, in).value > 0 ? "messages" : "messages one way";
}

Ways::BySize ways_of(const SizeTable& table) {
  Ways::BySize ways;
  Bytes before{};
  for (const auto& [bytes, measured] : table.points) {
    if (!measured.choice.empty() && (ways.empty() || ways.back().second != measured.choice)) {
      const double middle =
          std::sqrt(static_cast<double>(before.value) * static_cast<double>(bytes.value));
      ways.emplace_back(ways.empty() ? Bytes{0} : Bytes{std::llround(middle)}, measured.choice);
    }
    before = bytes;
  }
  return ways;
}

std::string to_text(const Ways::BySize& ways) {
  std::string text;
  for (const auto& [bytes, way] : ways)
    text += fmt::format("{}{} from {} bytes", text.empty() ? "" : ", ", way, bytes.value);
  return text;
}

Ways fastest_ways(std::span<const Program> programs, const MachineProfile& machine) {
  if (programs.empty()) return {};
  const Topology placement = machine.placement(programs.front().ranks);
  std::set<std::string> keys;
  for (const Program& program : programs) {
    for (const Step& step : program.steps) {
      if (const auto* collective = std::get_if<CollectiveStep>(&step.body))
        keys.insert(key_of(*collective, placement));
      if (const auto* exchange = std::get_if<ExchangeStep>(&step.body))
        for (const auto& [peer, bytes] : traffic_of(*exchange))
          keys.insert(message_key(program.rank, peer, bytes.out, bytes.in, placement));
    }
  }
  Ways ways;
  for (const std::string& key : keys) {
    const SizeTable* table = table_of(key, machine);
    if (table == nullptr) continue;
    if (Ways::BySize by_size = ways_of(*table); !by_size.empty())
      ways.transfers[key] = std::move(by_size);
  }
  if (!ways.transfers.empty()) ways.placement = placement;
  return ways;
}

void take_ways(Program& program, const Ways& ways) {
  if (ways.transfers.empty()) return;
  program.ways = names_of(ways);
  for (Step& step : program.steps) {
    if (auto* collective = std::get_if<CollectiveStep>(&step.body))
      collective->way =
          find_way(program, ways, key_of(*collective, ways.placement), collective->bytes());
    auto* exchange = std::get_if<ExchangeStep>(&step.body);
    if (exchange == nullptr) continue;
    const std::map<int, Traffic> peers = traffic_of(*exchange);
    for (auto* messages : {&exchange->sends, &exchange->receives}) {
      for (Message& message : *messages) {
        const auto& [out, in] = peers.at(message.peer);
        message.way = find_way(program, ways,
                               message_key(program.rank, message.peer, out, in, ways.placement),
                               std::max(out, in));
      }
    }
  }
}

}  // namespace stratplan
