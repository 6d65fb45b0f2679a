#include "profile/drift.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// Returns the mean time at the profile's speed, without drift.
Seconds time_of(const Measurement& measured) { return measured.mean() / measured.drift; }

}  // namespace

std::vector<RepresentativeKernel> representative_kernels(std::span<const Program> programs,
                                                         const MachineProfile& machine,
                                                         double share, std::size_t most) {
  std::map<std::string, RepresentativeKernel> by_key;
  Seconds all{};
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (!compute) continue;
      const auto measured = machine.kernels.find(compute->kernel.key());
      if (measured == machine.kernels.end()) continue;
      by_key.try_emplace(measured->first, RepresentativeKernel{compute->kernel})
          .first->second.seconds += time_of(measured->second);
      all += time_of(measured->second);
    }
  }
  std::vector<RepresentativeKernel> kernels;
  for (const auto& [key, kernel] : by_key) kernels.push_back(kernel);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  std::size_t count = 0;
  for (Seconds covered{}; count < std::min(most, kernels.size()) && covered < all * share; ++count)
    covered += kernels[count].seconds;
  kernels.resize(count);
  return kernels;
}

std::optional<Drift> drift_of(std::span<const RepresentativeKernel> kernels,
                              const MachineProfile& before, const MachineProfile& now) {
  SP_ASSERT(!kernels.empty(), "no kernels given");
  std::vector<double> ratios;
  Seconds then{}, today{};
  for (const RepresentativeKernel& representatives : kernels) {
    const std::string key = representatives.kernel.key();
    ratios.push_back(time_of(now.kernels.at(key)) / time_of(before.kernels.at(key)));
    then += representatives.seconds;
    today += representatives.seconds * ratios.back();
  }
  const auto [least, most] = std::ranges::minmax(ratios);
  Drift drift{today / then, least, most, static_cast<int>(kernels.size())};
  double variance = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i)
    variance += kernels[i].seconds / then * std::pow(ratios[i] / drift.ratio - 1, 2);
  drift.even = std::sqrt(variance) <= tolerated_unevenness;
  if (drift.even && std::abs(drift.ratio - 1) <= tolerated_drift) return std::nullopt;
  return drift;
}

std::optional<Drift> measure_drift(
    std::span<const Program> programs, const MachineProfile& known, int threads_per_rank,
    const std::function<MachineProfile(const ProfileRequest&)>& measure) {
  SP_ASSERT(!programs.empty(), "no programs given");
  ProfileRequest request{.ranks = programs.front().ranks,
                         .threads_per_rank = threads_per_rank,
                         .collectives = {},
                         .kernels = {}};
  if (!serves(known, request.ranks, threads_per_rank)) return std::nullopt;
  const std::vector<RepresentativeKernel> representatives = representative_kernels(programs, known);
  if (representatives.empty()) return std::nullopt;
  for (const RepresentativeKernel& each : representatives) request.kernels.push_back(each.kernel);
  return drift_of(representatives, known, measure(request));
}

}  // namespace stratplan
