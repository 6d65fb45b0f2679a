#pragma once
// Collects the groups of ranks that run a job's collectives. NCCL makes a group in a call that all
// ranks must join (ncclCommSplit), so each rank must know the groups of all ranks.
#include <compare>
#include <vector>

#include "model/partition/program/program.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan {

/// The ranks of a collective, and its stream. Equal ranks on two streams are two groups, so that
/// each stream gets its own communicator and their collectives do not wait for each other.
struct CollectiveGroup {
  Stream stream = Stream::Compute;
  std::vector<int> ranks;  ///< ascending
  friend auto operator<=>(const CollectiveGroup&, const CollectiveGroup&) = default;
};

/// Returns the groups of one rank's program, each group once.
std::vector<CollectiveGroup> groups_of(const Program& program);

/// Returns the groups of all ranks, each group once, in the same order on every rank. Called by all
/// ranks.
std::vector<CollectiveGroup> gather_groups(const std::vector<CollectiveGroup>& mine,
                                           Communicator& communicator);

/// Divides the groups into rounds. Groups of a round have no rank in common. So one split can make
/// all groups of a round, because each rank names at most one group in a split.
std::vector<std::vector<CollectiveGroup>> rounds_of(const std::vector<CollectiveGroup>& groups);

/// Returns the index of the rank's group in a round; -1 if the rank is in no group of the round.
int group_with(int rank, const std::vector<CollectiveGroup>& round);

}  // namespace stratplan
