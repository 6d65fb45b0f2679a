#include "profile/cluster_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/machine/link_rates.hpp"
#include "profile/device_profile.hpp"
#include "profile/link_profile.hpp"
#include "profile/measure/link_profiler.hpp"
#include "profile/overlap_profile.hpp"

namespace stratplan {
namespace {

/// Few samples are taken, because there are many tables. A cluster's network is also less noisy
/// than two processes that share a core.
constexpr StoppingRule cluster_rule{.least_samples = 10,
                                    .least_expensive = 2,
                                    .most_samples = 200,
                                    .enough = {0.002},
                                    .patience = {0.02},
                                    .precision = 0.05};

/// Returns least, 2 * least, 4 * least, ... below `most`, and `most` itself.
std::vector<int> doubling(int least, int most) {
  std::set<int> numbers;
  for (int number = least; number < most; number *= 2) numbers.insert(number);
  if (most >= least) numbers.insert(most);
  return {numbers.begin(), numbers.end()};
}

std::vector<int> neighbours(int rank, int count, int ranks) {
  if (count == 1) return {rank ^ 1};
  std::set<int> peers;
  for (int distance = 1; distance <= count / 2; ++distance)
    for (const int peer : {(rank + distance) % ranks, (rank - distance + ranks) % ranks})
      peers.insert(peer);
  return {peers.begin(), peers.end()};
}

}  // namespace

std::string ExchangePattern::name() const {
  switch (kind) {
    case Kind::Within: return "pairs within a node";
    case Kind::Across:
      return fmt::format("{} pair{} per node across", count, count == 1 ? "" : "s");
    case Kind::Peers: break;
  }
  return fmt::format("{} peer{}", count, count == 1 ? "" : "s");
}

std::vector<int> ExchangePattern::peers(int rank, const ClusterLayout& layout) const {
  const int node = rank / layout.ranks_per_node, place = rank % layout.ranks_per_node;
  switch (kind) {
    case Kind::Within: {
      const bool last_of_odd = (place ^ 1) >= layout.ranks_per_node;
      return last_of_odd ? std::vector<int>{}
                         : std::vector{node * layout.ranks_per_node + (place ^ 1)};
    }
    case Kind::Across:
      return place < count ? std::vector{(node ^ 1) * layout.ranks_per_node + place}
                           : std::vector<int>{};
    case Kind::Peers: break;
  }
  return neighbours(rank, count, layout.ranks);
}

std::vector<ExchangePattern> exchange_patterns(const ClusterLayout& layout) {
  using enum ExchangePattern::Kind;
  constexpr int most_peers = 64;
  std::vector<ExchangePattern> patterns;
  if (layout.ranks_per_node > 1) patterns.push_back({Within, layout.ranks_per_node / 2});
  if (layout.nodes() > 1)
    for (const int pairs : doubling(1, layout.ranks_per_node)) patterns.push_back({Across, pairs});
  for (int peers = 1; peers <= std::min(most_peers, layout.ranks - 1); peers *= 2)
    patterns.push_back({Peers, peers});
  return patterns;
}

Topology ClusterLayout::topology() const {
  Topology groups{nodes(), std::min(ranks, ranks_per_node)};
  std::erase(groups, 1);
  return groups;
}

std::vector<GroupLayout> group_layouts(const ClusterLayout& layout) {
  const int per_node = layout.ranks_per_node, nodes = layout.ranks / per_node;
  std::vector<GroupLayout> groups;
  for (const int size : doubling(2, per_node))
    if (per_node % size == 0) groups.push_back({size, 1});
  for (const int size : doubling(2, nodes)) groups.push_back({size * per_node, 1});
  if (per_node > 1)
    for (const int size : doubling(2, nodes)) groups.push_back({size, per_node});
  return groups;
}

std::string collective_key(Collective op, DataType type, const GroupLayout& group,
                           const ClusterLayout& layout) {
  std::vector<int> ranks;
  for (int i = 0; i < group.size; ++i) ranks.push_back(i * group.stride);
  const Topology topology = layout.topology();
  return collective_key(op, type, shape_of(ranks, topology), topology.size());
}

namespace {

/// Measures the tables of a cluster profile, one after the other.
class ClusterProfiler {
 public:
  ClusterProfiler(const ClusterLayout& layout, Bytes largest, Backend& backend, const Team& team,
                  const std::function<void(const std::string&)>& progress)
      : layout_(layout),
        largest_(largest),
        team_(team),
        progress_(progress),
        links_(backend, team, largest, cluster_rule) {}

  SizeTable one_way(const ExchangePattern& pattern) {
    const std::vector<int> peers = pattern.peers(team_.rank(), layout_);
    const int partner = peers.empty() ? team_.size() : peers.front();
    return table("messages one way, " + pattern.name(), {4}, largest_,
                 [&](Bytes bytes) { return links_.one_way(partner, bytes); });
  }

  SizeTable exchange(const ExchangePattern& pattern) {
    const int messages = pattern.kind == ExchangePattern::Kind::Peers ? pattern.count : 1;
    return table("exchange, " + pattern.name(), {4}, largest_ / messages, [&](Bytes bytes) {
      return links_.exchange(pattern.peers(team_.rank(), layout_), bytes);
    });
  }

  SizeTable collective(Collective op, const GroupLayout& group) {
    const CollectiveRequest request{op, DataType::F32, group.size, largest_};
    const Bytes least{std::max<std::int64_t>(8, group.size * size_of(request.type))};
    return table(collective_key(op, request.type, group, layout_), least, largest_,
                 [&](Bytes bytes) { return links_.collective(request, group.stride, bytes); });
  }

 private:
  SizeTable table(const std::string& what, Bytes least, Bytes largest, const MeasureSize& measure) {
    if (progress_) progress_(what);
    return measure_by_size(least, std::max(least, largest), measure);
  }

  ClusterLayout layout_;
  Bytes largest_;
  const Team& team_;
  const std::function<void(const std::string&)>& progress_;
  LinkProfiler links_;
};

/// Returns the most bytes per second that a node sends, over all measured numbers of pairs.
double shared_by_a_node(const std::map<std::string, SizeTable>& exchanges,
                        const ClusterLayout& layout) {
  double most = 0;
  for (const ExchangePattern& pattern : exchange_patterns(layout)) {
    if (pattern.kind != ExchangePattern::Kind::Across) continue;
    const auto& [bytes, measurement] = exchanges.at(pattern.name()).points.back();
    most =
        std::max(most, pattern.count * static_cast<double>(bytes.value) / measurement.median.value);
  }
  return most;
}

}  // namespace

std::vector<CollectiveGroup> groups_to_measure(const ClusterLayout& layout, int rank) {
  std::set<CollectiveGroup> groups;
  for (const GroupLayout& group : group_layouts(layout))
    if (std::vector<int> ranks = group_of(rank, layout.ranks, group.size, group.stride);
        ranks.size() > 1)
      groups.insert({Stream::Halo, std::move(ranks)});
  if (layout.ranks > 1)
    groups.insert({Stream::Gradient, group_of(rank, layout.ranks, layout.ranks, 1)});
  return {groups.begin(), groups.end()};
}

MachineProfile profile_cluster(const ClusterLayout& layout, Bytes largest, Backend& backend,
                               const Team& team, const MachineProfile& base,
                               const Provenance& provenance,
                               const std::function<void(const std::string& what)>& progress) {
  using enum ExchangePattern::Kind;
  SP_ASSERT(team.size() == layout.ranks, "the layout has {} ranks, but the team has {}",
            layout.ranks, team.size());
  if (layout.ranks < 2)
    throw EnvironmentError("links are measured between at least 2 ranks, but 1 was started");
  MachineProfile machine;
  machine.name = base.name;
  machine.measured_ranks = layout.ranks;
  machine.device.memory = base.device.memory;
  describe_device(machine, profile_device(backend, team), backend);
  machine.levels = {
      {"node", layout.nodes(), {}, 0},
      {backend.device() ? "gpu" : base.levels.back().name, layout.ranks_per_node, {}, 0}};

  ClusterProfiler profiler(layout, largest, backend, team, progress);
  for (const ExchangePattern& pattern : exchange_patterns(layout))
    machine.exchanges[pattern.name()] = profiler.exchange(pattern);
  const bool several_nodes = layout.nodes() > 1, several_per_node = layout.ranks_per_node > 1;
  if (several_nodes) {
    describe_link(machine.levels[0], profiler.one_way({Across, 1}));
    machine.levels[0].shared_bytes_per_s = shared_by_a_node(machine.exchanges, layout);
  }
  machine.levels.resize(several_per_node ? 2 : 1);
  if (!several_nodes) machine.levels.erase(machine.levels.begin());
  const ExchangePattern innermost{several_per_node ? Within : Across, 1};
  machine.one_way = profiler.one_way(innermost);
  machine.both_ways = machine.exchanges.at(innermost.name());
  describe_link(machine.levels.back(), machine.one_way);
  for (const GroupLayout& group : group_layouts(layout))
    for (const Collective op :
         {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter})
      machine.collectives[collective_key(op, DataType::F32, group, layout)] =
          profiler.collective(op, group);
  if (progress) progress("gradient sums during kernels");
  machine.hidden = measure_hidden(backend, team);
  machine.provenance = provenance;
  machine.provenance.set("backend", describe_backend(backend.name()));
  if (const auto info = backend.device()) machine.provenance.set("device", info->name);
  return machine;
}

void add_speeds(MachineProfile& machine, const std::vector<Kernel>& kernels, Backend& backend,
                const Team& team, const Progress& progress) {
  learn_speeds(machine, kernels, profile_kernels(kernels, backend, team, progress));
}

Seconds expected_time(const ClusterLayout& layout, Bytes largest) {
  constexpr Seconds device{5};
  constexpr std::size_t operations = 3;  // collectives of each group
  double sizes = 1;                      // of a table: each is four times the one before
  for (Bytes bytes{4}; bytes < largest; bytes = bytes * 4) ++sizes;
  const std::size_t one_way = layout.nodes() > 1 && layout.ranks_per_node > 1 ? 2 : 1;
  const std::size_t tables =
      one_way + exchange_patterns(layout).size() + operations * group_layouts(layout).size();
  return device + cluster_rule.patience * (sizes * static_cast<double>(tables));
}

Seconds expected_time(std::size_t kernels) {
  constexpr Seconds choices{0.3};  // trials of a few implementations
  return (choices + kernel_rule.patience * kernel_visits) * static_cast<double>(kernels);
}

}  // namespace stratplan
