#pragma once
// Measures the links of a cluster, independently of any network to train. It times:
//   - messages within a node, and between nodes, where several pairs of ranks at once share a
//     network interface
//   - exchanges with several peers
//   - collectives, by group size and distance of the ranks
//
// The job script of `profile --job` runs these measurements. They run on any MPI ranks.
// `ranks_per_node` consecutive ranks count as a node.
#include "model/cost/collective_cost.hpp"
#include "model/machine/machine_profile.hpp"
#include "profile/kernel_profile.hpp"
#include "profile/profile.hpp"

namespace stratplan {

struct ClusterLayout {
  int ranks = 1;
  int ranks_per_node = 1;
  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  /// Returns the number of nodes, then the ranks per node. A level of size 1 is left out, as in the
  /// result of profile_cluster().
  Topology topology() const;
};

/// Which ranks exchange messages at the same time. If a rank names a peer, the peer names that
/// rank. A pattern may name peers beyond the last rank. Such peers do not exist and are skipped.
struct ExchangePattern {
  enum class Kind { Within, Across, Peers };
  Kind kind = Kind::Within;
  /// Across: pairs of ranks per node. Peers: neighbours of each rank. Within: not used.
  int count = 1;

  /// Returns the pattern's key in MachineProfile::exchanges, for example "4 peers".
  std::string name() const;
  std::vector<int> peers(int rank, const ClusterLayout& layout) const;
};

/// Returns the patterns to measure. The first is all pairs within a node. Then 1, 2, 4, ... and all
/// ranks of a node exchange with their counterparts on a neighbouring node. Finally each rank has
/// 1, 2, 4, ... 64 peers. Patterns that need more ranks than the layout has are left out.
std::vector<ExchangePattern> exchange_patterns(const ClusterLayout& layout);

/// A group of `size` ranks at equal distances. Its ranks are 0, stride, 2 * stride, ...
struct GroupLayout {
  int size = 2;
  int stride = 1;
};
/// Returns the groups to measure. A group holds consecutive ranks (an equal part of a node, a node
/// or several nodes), or one rank on each of several nodes. Sizes double from group to group, up to
/// the largest possible size.
std::vector<GroupLayout> group_layouts(const ClusterLayout& layout);

/// Returns the key of collective `op` in this group, as MachineProfile::collectives has it.
std::string collective_key(Collective op, DataType type, const GroupLayout& group,
                           const ClusterLayout& layout);

/// Measures the cluster. All ranks call this function, and all get the same result. `largest`: the
/// most bytes that a rank sends in one operation. The result has the levels of the layout. The
/// level of nodes is named "node". The level within a node is named "gpu" where the backend has a
/// device, else like the innermost level of `base`. Requires as many ranks in `team` as in
/// `layout`. Throws EnvironmentError if there are fewer than 2 ranks, and CommunicationError if
/// communication fails.
MachineProfile profile_cluster(const ClusterLayout& layout, Bytes largest, Backend& backend,
                               const Team& team, const MachineProfile& base,
                               const Provenance& provenance,
                               const std::function<void(const std::string& what)>& progress);

/// Measures kernels on all ranks at once, and adds what they take relative to their estimates to
/// MachineProfile::speeds. The kernels' own times are not kept, because plans for other numbers of
/// ranks have other kernels. All ranks call this function with the same kernels.
void add_speeds(MachineProfile& machine, const std::vector<Kernel>& kernels, Backend& backend,
                const Team& team, const Progress& progress);

/// Returns about how long profile_cluster() takes, from the number of its tables and the patience
/// of their stopping rule.
Seconds expected_time(const ClusterLayout& layout, Bytes largest);
/// Returns about how long add_speeds() takes for this many kernels.
Seconds expected_time(std::size_t kernels);

/// Returns the groups that hold `rank` and whose collectives profile_cluster() measures.
std::vector<CollectiveGroup> groups_to_measure(const ClusterLayout& layout, int rank);

}  // namespace stratplan
