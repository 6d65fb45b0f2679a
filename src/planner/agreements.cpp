#include "planner/agreements.hpp"

#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "model/base/index.hpp"

namespace stratplan {
namespace {

/// What determines how a decomposition of a block's root splits the parameters of the block. Only
/// filters and channels split parameters.
using ParameterSplit = std::pair<OutputLayout, std::vector<std::array<int, 3>>>;

ParameterSplit parameter_split(const Decomposition& root) {
  ParameterSplit split{root.output_layout, {}};
  for (const GridDigit& digit : root.grid.digits())
    if (digit.dim == Dim::F || digit.dim == Dim::C)
      split.second.push_back({static_cast<int>(digit.dim), digit.parts, digit.stride});
  return split;
}

/// Numbers the ways in which candidates of blocks split the same parameters.
class Ways {
 public:
  Ways(const Network& network, const std::vector<Block>& blocks)
      : network_(network), blocks_(blocks) {}

  /// Returns the number of each candidate's way.
  std::vector<int> of(const SharedParameters::User& user, const BlockCandidates& candidates) {
    std::map<ParameterSplit, int>& known = known_[traits_of(user)];
    std::vector<int> ways;
    for (int i = 0; i < candidates.count(user.block); ++i) {
      const Decomposition root = candidates.decomposition(user.block, i);
      const auto [found, fresh] = known.try_emplace(parameter_split(root), 0);
      if (fresh)
        found->second = number_of(parts_of(network_, blocks_[at(user.block)], user.uses, root));
      ways.push_back(found->second);
    }
    return ways;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  /// All that a split of the parameters depends on besides the grid: kinds, groups and channels of
  /// the block's layers, and which of these layers have the parameters.
  using Traits = std::vector<std::array<std::int64_t, 4>>;
  Traits traits_of(const SharedParameters::User& user) const {
    Traits traits;
    for (const LayerIndex index : blocks_[at(user.block)].layers) {
      const Layer& layer = network_.layer(index);
      traits.push_back({static_cast<std::int64_t>(layer.kind), layer.groups(), layer.input[Axis::C],
                        layer.output[Axis::C]});
    }
    for (const ParameterUse& use : user.uses)
      traits.push_back(
          {use.layer - blocks_[at(user.block)].root(), static_cast<std::int64_t>(use.role), 0, 0});
    return traits;
  }

  int number_of(const ParameterParts& parts) {
    std::vector<std::int64_t> bounds;
    for (const Region& part : parts)
      for (const Interval interval : part.interval) {
        bounds.push_back(interval.begin);
        bounds.push_back(interval.end);
      }
    return numbers_.try_emplace(std::move(bounds), static_cast<int>(count())).first->second;
  }

  const Network& network_;
  const std::vector<Block>& blocks_;
  std::map<Traits, std::map<ParameterSplit, int>> known_;
  std::map<std::vector<std::int64_t>, int> numbers_;
};

/// Renumbers the choices, so that only those remain that all users can make.
void keep_common(Agreement& agreement, std::size_t ways) {
  std::vector<std::size_t> users_with(ways, 0);
  for (const Agreement::User& user : agreement.users) {
    std::vector<bool> has(ways, false);
    for (const int way : user.choice_of) has[at(way)] = true;
    for (std::size_t way = 0; way < ways; ++way) users_with[way] += has[way];
  }
  std::vector<int> choice_of_way(ways, -1);
  for (std::size_t way = 0; way < ways; ++way)
    if (users_with[way] == agreement.users.size()) choice_of_way[way] = agreement.choices++;
  for (Agreement::User& user : agreement.users)
    for (int& choice : user.choice_of) choice = choice_of_way[at(choice)];
}

}  // namespace

std::vector<Agreement> agreements_between(const Network& network, const std::vector<Block>& blocks,
                                          const BlockCandidates& candidates) {
  std::vector<Agreement> agreements;
  for (const SharedParameters& shared : shared_between(network, blocks)) {
    Agreement& agreement = agreements.emplace_back();
    agreement.name = shared.name;
    Ways ways(network, blocks);
    for (const SharedParameters::User& user : shared.users)
      agreement.users.push_back({user.block, ways.of(user, candidates)});
    keep_common(agreement, ways.count());
  }
  return agreements;
}

std::vector<Agreement> keep_agreeable(const Network& network, const std::vector<Block>& blocks,
                                      std::vector<std::vector<Decomposition>>& candidates) {
  const BlockCandidates view{
      [&](int block) { return static_cast<int>(candidates[at(block)].size()); },
      [&](int block, int candidate) { return candidates[at(block)][at(candidate)]; }};
  for (;;) {
    std::vector<Agreement> agreements = agreements_between(network, blocks, view);
    std::map<int, std::set<int>> dropped;  // by block
    for (const Agreement& agreement : agreements)
      for (const Agreement::User& user : agreement.users)
        for (int i = 0; i < std::ssize(user.choice_of); ++i)
          if (user.choice_of[at(i)] < 0) dropped[user.node].insert(i);
    if (dropped.empty()) return agreements;
    for (const auto& [block, gone] : dropped) {
      std::vector<Decomposition> kept;
      for (int i = 0; i < view.count(block); ++i)
        if (!gone.contains(i)) kept.push_back(candidates[at(block)][at(i)]);
      candidates[at(block)] = std::move(kept);
    }
  }
}

}  // namespace stratplan
