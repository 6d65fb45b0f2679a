#include "profile/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/error.hpp"
#include "model/machine/link_rates.hpp"
#include "profile/device_profile.hpp"
#include "profile/interference_profile.hpp"
#include "profile/link_profile.hpp"
#include "profile/measure/link_profiler.hpp"
#include "profile/overlap_profile.hpp"

namespace stratplan {
namespace {

/// Returns `base` if its measurements still apply, else a new profile with its name, levels and
/// device.
MachineProfile start_from(const MachineProfile& base, const ProfileRequest& request,
                          const Backend& backend) {
  const auto device = backend.device();
  const bool same = base.provenance.text("backend") == describe_backend(backend.name()) &&
                    (!device || base.provenance.text("device") == device->name);
  if (same && serves(base, request.ranks, request.threads_per_rank)) return base;
  MachineProfile fresh;
  fresh.name = base.name;
  fresh.levels = base.levels;
  fresh.device = base.device;
  return fresh;
}

/// Returns one machine level on which each rank has a device of its own. The level's bandwidth is
/// that of the device's memory, which is right for one rank. Measured links replace it later.
std::vector<Level> level_of_devices(const DeviceRates& device, int ranks) {
  return {{.name = "gpu",
           .ranks = ranks,
           .latency = device.launch,
           .bandwidth_bytes_per_s = device.bytes_per_s}};
}

/// Measures how much emulated traffic slows kernels down. A single rank estimates `hidden` from
/// these slowdowns.
void emulate_interference(MachineProfile& machine, Backend& backend) {
  machine.interference = profile_interference(backend, kernels_interfered_with());
  if (!machine.interference.empty()) machine.hidden = hidden_beside_traffic(machine.interference);
}

/// Raises the device's arithmetic rates to the best rate of the measured kernels, at the profile's
/// speed. With a lower rate, estimated times would exceed measured times.
void raise_rates(DeviceRates& device, const std::vector<Kernel>& kernels,
                 const std::map<std::string, Measurement>& measured) {
  for (const Kernel& kernel : kernels) {
    const Measurement& measurement = measured.at(kernel.key());
    const Seconds seconds = measurement.median / measurement.drift;
    if (seconds <= device.launch * 10) continue;
    double& rate = !is_narrow(kernel.type)
                       ? device.flops_per_s
                       : device.math_flops_per_s[static_cast<std::size_t>(
                             kernel.type == DataType::F16 ? Math::Fp16 : Math::Bf16)];
    rate = std::max(rate, kernel.flops().value / (seconds - device.launch).value);
  }
}

}  // namespace

std::vector<CollectiveGroup> groups_to_measure(const ProfileRequest& request, int rank) {
  std::set<CollectiveGroup> groups;
  for (const CollectiveRequest& collective : request.collectives)
    groups.insert({Stream::Halo, group_of(rank, request.ranks, collective.group_size, 1)});
  if (request.hidden)
    groups.insert({Stream::Gradient, group_of(rank, request.ranks, request.ranks, 1)});
  std::erase_if(groups, [](const CollectiveGroup& group) { return group.ranks.size() < 2; });
  return {groups.begin(), groups.end()};
}

MachineProfile run_profile(const ProfileRequest& request, Backend& backend, const Team& team,
                           const MachineProfile& base, const Provenance& provenance,
                           const Progress& progress) {
  if (team.size() != request.ranks)
    throw EnvironmentError(fmt::format("the profile request is for {} ranks, but {} were started",
                                       request.ranks, team.size()));
  MachineProfile machine = start_from(base, request, backend);
  const bool anew = machine.measured_ranks == 0;
  machine.assumed = false;
  machine.measured_ranks = request.ranks;
  machine.threads_per_rank = request.threads_per_rank;

  const std::size_t total = request.kernels.size();
  if (request.device || anew) {
    if (progress) progress(0, total, "rates of the device");
    describe_device(machine, profile_device(backend, team), backend);
    if (backend.device()) machine.levels = level_of_devices(machine.device, request.ranks);
  }
  LinkProfile links = profile_links(request, backend, team, [&](const std::string& what) {
    if (progress) progress(0, total, what);
  });
  if (!links.one_way.points.empty()) {
    machine.one_way = std::move(links.one_way);
    machine.both_ways = std::move(links.both_ways);
    describe_link(machine.levels.back(), machine.one_way);
  }
  for (auto& [key, table] : links.collectives) machine.collectives[key] = std::move(table);
  if (request.hidden) {
    if (progress) progress(0, total, "gradient sums during kernels");
    machine.hidden = measure_hidden(backend, team);
  }
  if (request.ranks == 1 && (request.device || anew) && backend.emulates_traffic()) {
    if (progress) progress(0, total, "kernels during emulated communication");
    emulate_interference(machine, backend);
  }
  KernelProfile kernels = profile_kernels(request.kernels, backend, team, progress);
  for (auto& [key, measurement] : kernels.kernels) {
    measurement.drift = request.drift;
    machine.kernels[key] = measurement;
  }
  if (anew) raise_rates(machine.device, request.kernels, kernels.kernels);
  learn_speeds(machine, request.kernels, kernels);
  if (progress) progress(total, total, "done");

  machine.provenance = provenance;
  machine.provenance.set("backend", describe_backend(backend.name()));
  machine.provenance.set("foreign_load_worst", std::max(kernels.foreign_load, links.foreign_load));
  if (const auto info = backend.device()) machine.provenance.set("device", info->name);
  if (kernels.highest_clock > 0) {
    machine.provenance.set("clock_hz_highest", kernels.highest_clock);
    machine.provenance.set("clock_share_worst", kernels.clock_share);
  }
  if (!machine.interference.empty())
    machine.provenance.set("hidden",
                           "emulated: the share of their speed that kernels keep while 16 blocks "
                           "of the same device copy memory at the rate of a link; no rank "
                           "communicated");
  return machine;
}

}  // namespace stratplan
