#include "model/cost/collective_cost.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/cost/library_collective.hpp"

namespace stratplan {

Seconds estimate_collective(Collective op, Bytes bytes, int members, const Level& level,
                            const DeviceRates& device) {
  SP_ASSERT(members >= 1 && level.bandwidth_bytes_per_s > 0 && device.bytes_per_s > 0, "members={}",
            members);
  if (members == 1) return {0};
  const double a = level.latency.value;
  const double n = static_cast<double>(bytes.value);
  const double move = n / level.bandwidth_bytes_per_s;
  const double sum = n / device.bytes_per_s;
  const double steps = doublings(members);
  const double others = members - 1;
  const double share = others / members;
  switch (op) {
    case Collective::AllReduce: {
      const double recursive_doubling = steps * (a + move + sum);
      const double rabenseifner = 2 * steps * a + 2 * share * move + share * sum;
      const double ring = 2 * others * a + 2 * share * move + share * sum;
      return {std::min({recursive_doubling, rabenseifner, ring})};
    }
    case Collective::ReduceScatter: return {std::min(steps, others) * a + share * (move + sum)};
    case Collective::AllGather: return {std::min(steps, others) * a + share * move};
  }
  SP_ASSERT(false, "collective {}", static_cast<int>(op));
  return {};
}

bool runs_beside_kernels(Collective op, Stream stream, const MachineProfile& machine) {
  return machine.on_gpus() || (op == Collective::AllReduce && stream == Stream::Gradient);
}

int ranks_within(const Topology& placement, std::size_t level) {
  return std::accumulate(placement.begin() + static_cast<std::ptrdiff_t>(level) + 1,
                         placement.end(), 1, std::multiplies<>());
}

double doublings(int members) {
  return static_cast<double>(std::bit_width(static_cast<unsigned>(members - 1)));
}

double shared_bandwidth(const Level& level, int flows) {
  return level.shared_bytes_per_s > 0
             ? std::min(level.bandwidth_bytes_per_s, level.shared_bytes_per_s / flows)
             : level.bandwidth_bytes_per_s;
}

namespace {

/// The time of the fastest algorithm over all members at once. The latency is that of the outermost
/// level with several members. The bandwidth is that of a ring at its narrowest level.
Seconds flat(Collective op, Bytes bytes, const GroupShape& shape, const Topology& placement,
             const MachineProfile& machine) {
  Level transport;
  int inside = 1;
  for (std::size_t level = placement.size(); level-- > 0;) {
    if (shape.members[level] == 1) continue;
    const double bandwidth = shared_bandwidth(machine.levels[level],
                                              std::max(1, ranks_within(placement, level) / inside));
    transport.bandwidth_bytes_per_s =
        inside == 1 ? bandwidth : std::min(transport.bandwidth_bytes_per_s, bandwidth);
    transport.latency = machine.levels[level].latency;
    inside *= shape.members[level];
  }
  return estimate_collective(op, bytes, shape.size(), transport, machine.device);
}

}  // namespace

Seconds estimate_collective(Collective op, Bytes bytes, const GroupShape& shape,
                            const Topology& placement, const MachineProfile& machine) {
  if (shape.size() == 1) return {0};
  if (has_library_rates(shape, machine))
    return estimate_by_library(op, bytes, shape, placement, machine);
  const Seconds at_once = flat(op, bytes, shape, placement, machine);
  std::size_t innermost = placement.size() - 1;
  while (shape.members[innermost] == 1) --innermost;
  GroupShape outside = shape;
  outside.members[innermost] = 1;
  if (outside.size() == 1) return at_once;
  GroupShape inside;
  inside.members[innermost] = shape.members[innermost];
  const auto within = [&](Collective part) {
    return flat(part, bytes, inside, placement, machine);
  };
  Seconds in_turn =
      estimate_collective(op, {bytes.value / inside.size()}, outside, placement, machine);
  if (op != Collective::AllGather) in_turn += within(Collective::ReduceScatter);
  if (op != Collective::ReduceScatter) in_turn += within(Collective::AllGather);
  return std::min(at_once, in_turn);
}

OpCost collective_cost(Collective op, DataType type, Bytes bytes, const GroupShape& shape,
                       const Topology& placement, const MachineProfile& machine) {
  if (!machine.collectives.empty()) {
    const auto table = machine.collectives.find(collective_key(op, type, shape, placement.size()));
    if (table != machine.collectives.end()) {
      if (const Measurement* exact = table->second.find(bytes))
        return {exact->mean(), Tier::Measured, exact->deviation()};
      if (const auto between = table->second.at(bytes)) return {*between, Tier::Interpolated, {}};
    }
  }
  return {estimate_collective(op, bytes, shape, placement, machine), machine.estimate_tier(), {}};
}

OpCost collective_cost(const CollectiveOp& op, int ranks, const MachineProfile& machine) {
  const Topology placement = machine.placement(ranks);
  return collective_cost(op.op, op.type, op.bytes(), shape_of(op.group, placement), placement,
                         machine);
}

}  // namespace stratplan
