#include "model/cost/faster_machine.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "model/cost/op_cost.hpp"
#include "model/machine/kernel_estimate.hpp"

namespace stratplan {
namespace {

DeviceRates faster(DeviceRates device, Resource resource, double factor) {
  if (resource == Resource::Compute) {
    device.flops_per_s *= factor;
    for (double& rate : device.math_flops_per_s) rate *= factor;
  } else if (resource == Resource::MemoryBandwidth) {
    device.bytes_per_s *= factor;
  } else if (resource == Resource::Launches) {
    device.launch = device.launch / factor;
  }
  return device;
}

void scale(Measurement& measured, double share) {
  for (Seconds* seconds : {&measured.median, &measured.p10, &measured.p90})
    *seconds = *seconds * share;
  for (auto& [name, seconds] : measured.others) seconds = seconds * share;
}

/// Improves the times of a table. The time of the first point, which has the smallest size, counts
/// as the latency.
void improve(SizeTable& table, Resource resource, double factor) {
  if (table.points.empty()) return;
  const Seconds latency = table.points.front().second.median;
  for (auto& [bytes, measured] : table.points) {
    const Seconds beyond = std::max(Seconds{}, measured.median - latency),
                  at_once = measured.median - beyond;
    const Seconds improved =
        resource == Resource::Latency ? at_once / factor + beyond : at_once + beyond / factor;
    if (measured.median.value > 0) scale(measured, improved / measured.median);
  }
}

void improve_links(MachineProfile& machine, Resource resource, double factor) {
  for (Level& level : machine.levels) {
    if (resource == Resource::Latency) {
      level.latency = level.latency / factor;
      level.use.in_switch_hop = level.use.in_switch_hop / factor;
      for (ProtocolRates& rates : level.use.protocols) {
        rates.hop = rates.hop / factor;
        rates.start = rates.start / factor;
      }
    } else {
      level.bandwidth_bytes_per_s *= factor;
      level.shared_bytes_per_s *= factor;
    }
  }
  if (resource == Resource::Latency) machine.library.call = machine.library.call / factor;
  improve(machine.one_way, resource, factor);
  improve(machine.both_ways, resource, factor);
  for (auto* tables : {&machine.collectives, &machine.exchanges})
    for (auto& [key, table] : *tables) improve(table, resource, factor);
}

void improve_kernels(MachineProfile& machine, const DeviceRates& before,
                     const std::vector<Program>& programs) {
  std::set<std::string> seen;
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      const auto* load = std::get_if<LoadOp>(&op.body);
      if (!compute && !load) continue;
      const Kernel kernel = compute ? compute->kernel : load_kernel(*load);
      const auto measured = machine.kernels.find(kernel.key());
      if (measured != machine.kernels.end() && seen.insert(measured->first).second)
        scale(measured->second,
              estimate_kernel(kernel, machine.device) / estimate_kernel(kernel, before));
    }
  }
}

}  // namespace

std::string_view name_of(Resource resource) {
  constexpr std::array<std::string_view, resource_count> names{"compute", "memory bandwidth",
                                                               "launches", "latency", "bandwidth"};
  return names[static_cast<std::size_t>(resource)];
}

MachineProfile faster(const MachineProfile& machine, Resource resource, double factor,
                      const std::vector<Program>& programs) {
  MachineProfile result = machine;
  if (resource == Resource::Latency || resource == Resource::Bandwidth) {
    improve_links(result, resource, factor);
    return result;
  }
  result.device = faster(machine.device, resource, factor);
  if (resource == Resource::Launches) scale(result.step_overhead, 1 / factor);
  if (!machine.kernels.empty()) improve_kernels(result, machine.device, programs);
  return result;
}

Resource bound_of(const Kernel& kernel, const DeviceRates& device) {
  const Seconds with_rate = estimate_kernel(kernel, faster(device, Resource::Compute, 2));
  const Seconds with_bandwidth =
      estimate_kernel(kernel, faster(device, Resource::MemoryBandwidth, 2));
  return with_rate < with_bandwidth ? Resource::Compute : Resource::MemoryBandwidth;
}

}  // namespace stratplan
