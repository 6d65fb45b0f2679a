#include "model/partition/program/op_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace stratplan {
namespace {

std::string ranks_to_text(std::set<int> ranks, int self) {
  ranks.erase(self);
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::set<int> peers(const ExchangeOp& exchange) {
  std::set<int> ranks;
  for (const auto* messages : {&exchange.sends, &exchange.receives})
    for (const Message& message : *messages) ranks.insert(message.peer);
  return ranks;
}

std::string load_to_text(LoadOp::What what) {
  constexpr std::array<const char*, 3> contents{"samples", "labels", "targets"};
  return fmt::format("loading {}", contents[static_cast<std::size_t>(what)]);
}

}  // namespace

std::string to_text(const Op& op, const Network& network, int rank) {
  const std::string_view phase = name_of(op.phase);
  const std::string layer = op.layer >= 0 ? network.layer(op.layer).name : "all layers";
  if (const auto* compute = std::get_if<ComputeOp>(&op.body))
    return fmt::format("{} of {} ({})", compute->kernel.name(), layer, phase);
  if (const auto* load = std::get_if<LoadOp>(&op.body))
    return fmt::format("{} for {}", load_to_text(load->what), layer);
  if (const auto* exchange = std::get_if<ExchangeOp>(&op.body))
    return fmt::format("exchange with {} for {} ({})", ranks_to_text(peers(*exchange), rank), layer,
                       phase);
  const auto& collective = std::get<CollectiveOp>(op.body);
  return fmt::format("{} with {} for {} ({})", name_of(collective.op),
                     ranks_to_text({collective.group.begin(), collective.group.end()}, rank), layer,
                     phase);
}

}  // namespace stratplan
