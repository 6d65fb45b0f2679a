#include "model/cost/collective_cost.hpp"

#include <algorithm>
#include <bit>

#include "model/base/assert.hpp"

namespace stratplan {

std::string collective_key(Collective op, DataType type, int group_size) { return fmt::format("{} {} {}", name_of(op), name_of(type), group_size); }

Seconds estimate_collective(Collective op, Bytes bytes, int members, const Level& level, const DeviceRates& device) {
  SP_ASSERT(members >= 1 && level.bandwidth_bytes_per_s > 0 && device.bytes_per_s > 0, "members={}", members);
  if (members == 1) return {0};
  const double a = level.latency.value;
  const double n = static_cast<double>(bytes.value);
  const double move = n / level.bandwidth_bytes_per_s;
  const double sum = n / device.bytes_per_s;
  const double steps = static_cast<double>(std::bit_width(static_cast<unsigned>(members - 1)));  // ceil(lg p)
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

StepCost collective_cost(const CollectiveStep& step, int ranks, const MachineProfile& machine) {
  const int members = static_cast<int>(step.group.size());
  const auto table = machine.collectives.find(collective_key(step.op, step.type, members));
  if (table != machine.collectives.end()) {
    if (const Measurement* exact = table->second.find(step.bytes())) return {exact->mean(), Tier::Measured, exact->deviation()};
    if (const auto between = table->second.at(step.bytes())) return {*between, Tier::Interpolated, {}};
  }
  const Level& level = machine.levels[machine.meeting_level(step.group, ranks)];
  return {estimate_collective(step.op, step.bytes(), members, level, machine.device), Tier::Estimated, {}};
}

}  // namespace stratplan
