#pragma once
// The links of a cluster, whatever network is trained on it: messages within a node and across, so
// many pairs at once as share a network interface, exchanges with several peers, and collectives by
// size of the group and distance of its ranks. What the job measures that `profile --job` writes;
// the same runs on any MPI ranks, for which a node is so many ranks in turn.
#include "model/cost/collective_cost.hpp"
#include "model/machine/machine_profile.hpp"
#include "profile/profile.hpp"

namespace stratplan {

struct ClusterLayout {
  int ranks = 1;
  int ranks_per_node = 1;
  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  /// Levels of one group are left out, as in the machine that is measured.
  Topology topology() const;
};

/// Who sends to whom at once: whoever names a peer is named by it. Ranks beyond the last may be
/// named and are none.
struct ExchangePattern {
  enum class Kind { Within, Across, Peers };
  Kind kind = Kind::Within;
  int count = 1;  ///< Within, Across: pairs per node (within: all); Peers: neighbours of each rank

  std::string name() const;
  std::vector<int> peers(int rank, const ClusterLayout& layout) const;
};

/// Pairs within a node; 1, 2, 4, ... and all ranks of a node each with its counterpart on the next
/// node; 1, 2, 4, ... 64 peers. What the layout has no ranks for is left out.
std::vector<ExchangePattern> exchange_patterns(const ClusterLayout& layout);

/// A group of ranks at equal distances: rank 0, `stride`, 2 `stride`, ...
struct GroupLayout {
  int size = 2;
  int stride = 1;
};
/// Consecutive ranks: equal parts of a node, whole nodes, several nodes; and one rank on each of
/// several nodes. Twice as many each time, and all.
std::vector<GroupLayout> group_layouts(const ClusterLayout& layout);

/// The key of a layout's group in MachineProfile::collectives.
std::string collective_key(Collective op, DataType type, const GroupLayout& group,
                           const ClusterLayout& layout);

/// `largest`: bytes that a rank sends in one operation. Called by all ranks; the result is the same
/// on all. Levels are those of the layout, the innermost named as `base` names it. Throws
/// EnvironmentError, CommunicationError.
MachineProfile profile_cluster(const ClusterLayout& layout, Bytes largest, Backend& backend,
                               const Team& team, const MachineProfile& base,
                               const Provenance& provenance,
                               const std::function<void(const std::string& what)>& progress);

/// The groups of this rank whose collectives are measured.
std::vector<CollectiveGroup> groups_to_measure(const ClusterLayout& layout, int rank);

}  // namespace stratplan
