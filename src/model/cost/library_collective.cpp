#include "model/cost/library_collective.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/assert.hpp"
#include "model/base/inplace_vector.hpp"
#include "model/cost/collective_cost.hpp"

namespace stratplan {
namespace {

/// A level at which the group has several members.
struct Crossed {
  const LinkUse* use = nullptr;
  double members = 1;
  double outside = 1;  ///< number of such parts of the group: product of the outer levels' members
  double bandwidth = 0;  ///< bytes per second of one part of the group, all of its links together
  bool in_node = false;  ///< whether the level is between the devices of a node
};

using Way = InplaceVector<Crossed, GroupShape::most_levels>;  // innermost first

/// The levels that the group crosses. The groups that have members in one node share its links.
Way way_of(const GroupShape& shape, const Topology& placement, const MachineProfile& machine) {
  Way way;
  int inside = 1, nodes = 1;
  for (std::size_t level = placement.size(); level-- > 0;) {
    const int members = shape.members[level];
    if (members == 1) continue;
    const Level& link = machine.levels[level];
    const bool in_node = link.name == "gpu";
    const int groups = std::max(1, ranks_within(placement, level) / inside);
    const double joint = inside * shared_bandwidth(link, groups * inside);
    inside *= members;
    if (!in_node) nodes *= members;
    way.push_back({&link.use, static_cast<double>(members),
                   static_cast<double>(shape.size()) / inside, joint, in_node});
  }
  if (nodes > 1 && machine.library.congestion > 0) {
    const double left = std::pow(nodes, -machine.library.congestion);
    for (Crossed& level : way)
      if (!level.in_node) level.bandwidth *= left;
  }
  return way;
}

double ring(const Way& way, std::size_t protocol, double ways, double members, double bytes) {
  double start = 0, hops = 0, narrowest = std::numeric_limits<double>::infinity();
  for (const Crossed& level : way) {
    const ProtocolRates& rates = level.use->protocols[protocol];
    start = std::max(start, rates.start.value);
    hops += ways * level.outside * (level.members - 1) * rates.hop.value;
    narrowest = std::min(narrowest, rates.rate(level.bandwidth));
  }
  return start + hops + ways * (members - 1) / members * bytes / narrowest;
}

/// A tree over the nodes, and a chain or a sum in the switch inside each.
double tree(const Way& way, std::size_t protocol, bool in_switch, double tree_share, double bytes) {
  double start = 0, hops = 0, longest = 0;
  for (const Crossed& level : way) {
    const LinkUse& use = *level.use;
    const ProtocolRates& rates = use.protocols[protocol];
    const bool innermost = &level == &way.front();
    double rate = rates.rate(level.bandwidth) * tree_share;
    double moved = 2 * (level.members - 1) / level.members * bytes;
    if (innermost && in_switch) {
      hops += use.in_switch_hop.value;
      rate = level.bandwidth * use.in_switch_share;
      moved = (level.members + 1) / level.members * bytes;
    } else {
      start = std::max(start, rates.start.value);
      hops += 2 * (level.in_node ? level.members - 1 : doublings(static_cast<int>(level.members))) *
              rates.hop.value;
    }
    longest = std::max(longest, moved / rate);
  }
  return start + hops + longest;
}

}  // namespace

bool has_library_rates(const GroupShape& shape, const MachineProfile& machine) {
  for (std::size_t level = 0; level < machine.levels.size(); ++level)
    if (shape.members[level] > 1 && machine.levels[level].use.protocols.empty()) return false;
  return true;
}

Seconds estimate_by_library(Collective op, Bytes bytes, const GroupShape& shape,
                            const Topology& placement, const MachineProfile& machine) {
  const Way way = way_of(shape, placement, machine);
  SP_ASSERT(!way.empty(), "a group of {} ranks", shape.size());
  const bool sums = op == Collective::AllReduce;
  const double ways = sums ? 2 : 1, members = shape.size(), n = static_cast<double>(bytes.value);
  const bool in_switch = sums && way.front().use->in_switch_share > 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t protocol = 0; protocol < way.front().use->protocols.size(); ++protocol) {
    least = std::min(least, ring(way, protocol, ways, members, n));
    const double tree_share = machine.library.tree_share;
    if (sums && tree_share > 0) least = std::min(least, tree(way, protocol, false, tree_share, n));
    if (in_switch) least = std::min(least, tree(way, protocol, true, tree_share, n));
  }
  return machine.library.call + Seconds{least};
}

}  // namespace stratplan
