#include "model/partition/shared_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/base/index.hpp"

namespace stratplan {
namespace {

/// Returns, by rank of the job, the part of a parameter that the rank holds.
std::map<int, Region> parts_of(const Layer& layer, ParameterRole role,
                               const Decomposition& decomposition) {
  const LayerDistributions made = distribute(layer, decomposition);
  std::map<int, Region> parts;
  for (int rank = 0; rank < decomposition.grid.ranks(); ++rank)
    parts[decomposition.ranks.of_job(rank)] = made.parameter(role).owned(rank);
  return parts;
}

}  // namespace

std::optional<Rejection> check_shared(const Network& network,
                                      const LayerDecompositions& decompositions) {
  for (LayerIndex index = 0; index < network.size(); ++index)
    for (const auto& [role, shape] : network.layer(index).parameters()) {
      const LayerIndex first = network.first_user(index, role);
      if (first == index) continue;
      const Decomposition &here = decompositions[at(index)], &there = decompositions[at(first)];
      if (parts_of(network.layer(index), role, here) == parts_of(network.layer(first), role, there))
        continue;
      return Rejection{fmt::format(
          "layers {} and {} share {}, so they must split it alike, but {} and {} do not",
          network.layer(first).name, network.layer(index).name, network.parameter_name(index, role),
          there.text(), here.text())};
    }
  return {};
}

std::vector<SharedParameters> shared_between(const Network& network,
                                             const std::vector<Block>& blocks) {
  struct Users {
    std::vector<int> blocks;
    std::vector<ParameterUse> uses;  // by block
  };
  std::map<std::string, Users> by_parameter;
  for (int block = 0; block < static_cast<int>(blocks.size()); ++block)
    for (const LayerIndex layer : blocks[at(block)].layers)
      for (const auto& [role, shape] : network.layer(layer).parameters()) {
        if (!network.is_shared(layer, role)) continue;
        Users& users = by_parameter[network.parameter_name(layer, role)];
        if (!users.blocks.empty() && users.blocks.back() == block) continue;
        users.blocks.push_back(block);
        users.uses.push_back({layer, role});
      }
  std::map<std::vector<int>, SharedParameters> by_blocks;
  for (const auto& [name, users] : by_parameter) {
    if (users.blocks.size() == 1) continue;
    SharedParameters& shared = by_blocks[users.blocks];
    if (shared.users.empty()) {
      shared.name = name;
      for (const int block : users.blocks) shared.users.push_back({block, {}});
    }
    for (std::size_t user = 0; user < users.uses.size(); ++user)
      shared.users[user].uses.push_back(users.uses[user]);
  }
  std::vector<SharedParameters> result;
  for (auto& [users, shared] : by_blocks) result.push_back(std::move(shared));
  return result;
}

ParameterParts parts_of(const Network& network, const Block& block,
                        const std::vector<ParameterUse>& uses, const Decomposition& root) {
  const std::vector<Decomposition> decompositions = spread(network, block, root);
  ParameterParts all;
  for (const ParameterUse& use : uses) {
    const auto place = std::ranges::find(block.layers, use.layer) - block.layers.begin();
    for (const auto& [rank, part] : parts_of(network.layer(use.layer), use.role,
                                             decompositions[static_cast<std::size_t>(place)]))
      all.push_back(part);
  }
  return all;
}

}  // namespace stratplan
