#pragma once
// The groups of ranks that a job's collectives are of, for communicators that make them all at once
// and all ranks together (NCCL's split).
#include <compare>
#include <vector>

#include "model/partition/program/program.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Collectives of the same ranks on two streams do not wait for each other if each stream has a
/// communicator of its own.
struct CollectiveGroup {
  Stream stream = Stream::Compute;
  std::vector<int> ranks;  ///< ascending
  friend auto operator<=>(const CollectiveGroup&, const CollectiveGroup&) = default;
};

/// Those of one rank's program, once each.
std::vector<CollectiveGroup> groups_of(const Program& program);

/// Those of all ranks, once each and in the same order everywhere. Called by all ranks.
std::vector<CollectiveGroup> gather_groups(const std::vector<CollectiveGroup>& mine,
                                           Communicator& communicator);

/// Rounds of groups that have no rank in common: what one split makes, in which each rank names at
/// most one group.
std::vector<std::vector<CollectiveGroup>> rounds_of(const std::vector<CollectiveGroup>& groups);

/// Its place among the groups of a round, or -1.
int group_with(int rank, const std::vector<CollectiveGroup>& round);

}  // namespace stratplan
