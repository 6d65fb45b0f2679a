#include "runtime/device/collective_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace stratplan {
namespace {

bool holds(const CollectiveGroup& group, int rank) {
  return std::binary_search(group.ranks.begin(), group.ranks.end(), rank);
}

bool disjoint(const CollectiveGroup& a, const CollectiveGroup& b) {
  return std::none_of(a.ranks.begin(), a.ranks.end(), [&](int rank) { return holds(b, rank); });
}

/// Encodes each group as its stream, its number of ranks, and its ranks.
std::vector<std::int32_t> encode(const std::vector<CollectiveGroup>& groups) {
  std::vector<std::int32_t> text;
  for (const CollectiveGroup& group : groups) {
    text.push_back(static_cast<std::int32_t>(group.stream));
    text.push_back(static_cast<std::int32_t>(group.ranks.size()));
    text.insert(text.end(), group.ranks.begin(), group.ranks.end());
  }
  return text;
}

void decode(const std::vector<std::int32_t>& text, std::set<CollectiveGroup>& groups) {
  for (auto at = text.begin(); at != text.end();) {
    const auto stream = static_cast<Stream>(*at++);
    const auto ranks = *at++;
    groups.insert({stream, {at, at + ranks}});
    at += ranks;
  }
}

}  // namespace

std::vector<CollectiveGroup> groups_of(const Program& program) {
  std::set<CollectiveGroup> groups;
  for (const Op& op : program.ops)
    if (const auto* collective = std::get_if<CollectiveOp>(&op.body);
        collective && collective->group.size() > 1)
      groups.insert({op.stream, collective->group});
  return {groups.begin(), groups.end()};
}

std::vector<CollectiveGroup> gather_groups(const std::vector<CollectiveGroup>& mine,
                                           Communicator& communicator) {
  std::set<CollectiveGroup> groups;
  for (const auto& of_rank : gather(encode(mine), communicator)) decode(of_rank, groups);
  return {groups.begin(), groups.end()};
}

std::vector<std::vector<CollectiveGroup>> rounds_of(const std::vector<CollectiveGroup>& groups) {
  std::vector<std::vector<CollectiveGroup>> rounds;
  for (const CollectiveGroup& group : groups) {
    const auto has_room = [&](const auto& round) {
      return std::ranges::all_of(round, [&](const auto& other) { return disjoint(group, other); });
    };
    const auto round = std::ranges::find_if(rounds, has_room);
    (round == rounds.end() ? rounds.emplace_back() : *round).push_back(group);
  }
  return rounds;
}

int group_with(int rank, const std::vector<CollectiveGroup>& round) {
  const auto group =
      std::ranges::find_if(round, [&](const auto& candidate) { return holds(candidate, rank); });
  return group == round.end() ? -1 : static_cast<int>(group - round.begin());
}

}  // namespace stratplan
