#include "model/cost/op_cost.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/partition/layers/local_kernel.hpp"
#include "model/partition/program/contraction.hpp"

namespace stratplan {

namespace {

/// The time of kernels of this kind under the machine's software and drift, relative to the profile
/// or the estimate.
double factor_on(KernelKind kind, const MachineProfile& machine) {
  return machine.drift_factor() * (is_contraction(kind) ? machine.software.contraction_factor
                                                        : machine.software.other_factor);
}

/// The time of an update as the software's separate passes over memory, relative to the fused
/// kernel, which reads and writes each operand once.
double update_factor(const Kernel& kernel, const Software& software) {
  const auto passes = software.update_passes.find(kernel.kind);
  if (passes == software.update_passes.end()) return 1;
  const Bytes pass = Operand{DataType::F32, kernel.y.elements()}.bytes();
  return passes->second * static_cast<double>(pass.value) /
         static_cast<double>(kernel.bytes().value);
}

bool is_one_position(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W] == 1;
}

/// A convolution that was measured with several choices takes as long as the fastest one that the
/// software has. The time stays if none of those was measured, and for products: libraries compute
/// fully connected layers by other functions.
double choice_factor(const Kernel& kernel, const Measurement& measured, const Software& software) {
  const std::vector<std::string>& names = software.convolutions;
  if (names.empty() || measured.choice.empty() || is_one_position(kernel.y) ||
      std::ranges::find(names, measured.choice) != names.end())
    return 1;
  std::optional<Seconds> least;
  for (const std::string& name : names)
    if (const auto other = measured.others.find(name); other != measured.others.end())
      least = std::min(least.value_or(other->second), other->second);
  return least ? *least / measured.median : 1;
}

}  // namespace

Bytes mapped_bytes(const Kernel& kernel, const MachineProfile& machine) {
  const Software& software = machine.software;
  if (kernel.kind != KernelKind::ConvolutionBackwardFilter || machine.on_gpus() ||
      software.keeps_gradients || !software.mapping)
    return {};
  const Bytes gradient = kernel.operands().writes.front().bytes();
  return gradient >= software.mapped_from ? gradient : Bytes{};
}

OpCost cost_of(const Kernel& kernel, const MachineProfile& machine) {
  const double all = factor_on(kernel.kind, machine) * update_factor(kernel, machine.software);
  const Seconds mapping{machine.software.mapping.value_or(0) *
                        static_cast<double>(mapped_bytes(kernel, machine).value)};
  if (!machine.kernels.empty()) {
    const auto measured = machine.kernels.find(kernel.key());
    if (measured != machine.kernels.end()) {
      const double factor =
          all * choice_factor(kernel, measured->second, machine.software) / measured->second.drift;
      return {measured->second.mean() * factor + mapping, Tier::Measured,
              measured->second.deviation() * factor};
    }
    if (const auto borrowed = machine.borrowed.find(kernel.key()))
      return {borrowed->seconds * all + mapping, Tier::Calibrated, {}, borrowed->deviation};
  }
  const Seconds estimate = estimate_kernel(kernel, machine.device) * all;
  const auto correction = machine.speeds.correction(kernel);
  if (!correction) return {estimate + mapping, machine.estimate_tier(), {}};
  const Seconds seconds = estimate * correction->factor;
  return {seconds + mapping, Tier::Calibrated, {}, correction->deviation};
}

OpCost cost_of(const LoadOp& load, const MachineProfile& machine) {
  const Kernel copy = load_kernel(load);
  const double rate = machine.device.host_bytes_per_s;
  if (rate == 0 || machine.software.name != Software().name) return cost_of(copy, machine);
  const double bytes = static_cast<double>(copy.operands().writes[0].bytes().value);
  return {machine.device.launch + Seconds{bytes / rate}, Tier::Interpolated, {}};
}

Kernel load_kernel(const LoadOp& load) {
  const bool labels = load.what == LoadOp::What::Labels;
  Region all = whole(load.region.shape());
  if (labels) all[Axis::C] = {0, 1};
  return copy_kernel(all, all, all, all, labels ? DataType::I32 : DataType::F32);
}

Seconds estimate_exchange(std::size_t level, const LevelTraffic& traffic, const Topology& placement,
                          const MachineProfile& machine) {
  const Level& way = machine.levels[level];
  const double bandwidth = shared_bandwidth(way, ranks_within(placement, level));
  return way.latency * static_cast<double>(traffic.peers) +
         Seconds{static_cast<double>(std::max(traffic.out, traffic.in).value) / bandwidth};
}

namespace {

/// Whether the profile has tables of messages that hold at this level. The tables were measured
/// between neighbours, so they hold at the innermost level only.
bool measured_between(std::size_t level, const MachineProfile& machine) {
  return level + 1 == machine.levels.size() &&
         !(machine.one_way.points.empty() && machine.both_ways.points.empty());
}

}  // namespace

OpCost exchange_cost(int rank, int peer, Bytes out, Bytes in, int ranks,
                     const MachineProfile& machine) {
  const Bytes both = std::min(out, in), most = std::max(out, in);
  const std::size_t meeting = machine.meeting_level({rank, peer}, ranks);
  const SizeTable& table = both.value > 0 ? machine.both_ways : machine.one_way;
  if (!measured_between(meeting, machine) || table.points.empty())
    return {estimate_exchange(meeting, {1, out, in}, machine.placement(ranks), machine),
            machine.estimate_tier(),
            {}};
  if (both.value == 0 || both == most) {
    if (const Measurement* exact = table.find(most))
      return {exact->mean(), Tier::Measured, exact->deviation()};
    return {*table.at(most), Tier::Interpolated, {}};
  }
  const Seconds surplus = machine.one_way.points.empty()
                              ? *table.at(most) - *table.at(both)
                              : *machine.one_way.at(most) - *machine.one_way.at(both);
  return {*table.at(both) + std::max(surplus, Seconds{0}), Tier::Interpolated, {}};
}

namespace {

/// Prices an op by its kind.
struct Pricing {
  const Op& op;
  const Program& program;
  const MachineProfile& machine;

  OpCost operator()(const ComputeOp& compute) const { return cost_of(compute.kernel, machine); }

  OpCost operator()(const LoadOp& load) const { return cost_of(load, machine); }

  OpCost operator()(const ExchangeOp& exchange) const {
    std::map<int, std::pair<Bytes, Bytes>> peers;  // by peer: bytes out, bytes in
    for (const Message& message : exchange.sends) peers[message.peer].first += message.bytes;
    for (const Message& message : exchange.receives) peers[message.peer].second += message.bytes;
    OpCost total{{}, Tier::Measured, {}};
    std::map<std::size_t, LevelTraffic> estimated;
    for (const auto& [peer, bytes] : peers) {
      const std::size_t level = machine.meeting_level({program.rank, peer}, program.ranks);
      if (!measured_between(level, machine)) {
        LevelTraffic& traffic = estimated[level];
        traffic = {traffic.peers + 1, traffic.out + bytes.first, traffic.in + bytes.second};
        continue;
      }
      const OpCost one =
          exchange_cost(program.rank, peer, bytes.first, bytes.second, program.ranks, machine);
      total.seconds += one.seconds;
      total.deviation += one.deviation;
      total.tier = std::max(total.tier, one.tier);
    }
    if (!estimated.empty()) total.tier = machine.estimate_tier();
    const Topology placement = machine.placement(program.ranks);
    for (const auto& [level, traffic] : estimated)
      total.seconds += estimate_exchange(level, traffic, placement, machine);
    return total;
  }

  OpCost operator()(const CollectiveOp& collective) const {
    return collective_cost(collective, program.ranks, machine);
  }
};

}  // namespace

OpCost cost_of(const Op& op, const Program& program, const MachineProfile& machine) {
  return std::visit(Pricing{op, program, machine}, op.body);
}

}  // namespace stratplan
