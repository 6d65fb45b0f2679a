#include "profile/kernel_profile.hpp"

#include <algorithm>

#include "profile/load_guard.hpp"

namespace stratplan {
namespace {

constexpr Seconds bunch_time{1.0};
constexpr double tolerated_foreign_load = 0.04;
constexpr int most_repetitions = 2;
/// A machine that is never left alone is measured as it is.
constexpr int most_disturbed_bunches = 3;

}  // namespace

Bytes largest_operands(const std::vector<Kernel>& kernels) {
  constexpr std::int64_t padding = 64;
  Bytes largest{};
  for (const Kernel& kernel : kernels) {
    const Operands operands = kernel.operands();
    for (const auto* list : {&operands.reads, &operands.writes}) {
      Bytes bytes{};
      for (const Operand& operand : *list) bytes += operand.bytes() + Bytes{padding};
      largest = std::max(largest, bytes);
    }
  }
  return largest;
}

KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend, const Team& team, const StoppingRule& rule, const Progress& progress) {
  KernelProfile profile;
  if (kernels.empty()) return profile;
  KernelBuffers buffers(backend, largest_operands(kernels), kernel_arena);
  SteadyClock clock;
  const auto measure = [&](const Kernel& kernel) {
    const Measurement measurement = measure_kernel(kernel, backend, buffers, clock, team, rule);
    const auto [found, fresh] = profile.kernels.try_emplace(kernel.key(), measurement);
    if (!fresh && measurement.median < found->second.median) found->second = measurement;
  };
  int disturbed_bunches = 0;
  for (std::size_t begin = 0, end = 0; begin < kernels.size(); begin = end) {
    LoadGuard guard(team);
    for (; end < kernels.size() && (end == begin || team.greatest(guard.elapsed().value) < bunch_time.value); ++end) {
      if (progress) progress(end, kernels.size(), kernels[end].key());
      measure(kernels[end]);
    }
    double foreign = guard.foreign();
    for (int repetition = 0; foreign > tolerated_foreign_load && repetition < most_repetitions && disturbed_bunches < most_disturbed_bunches; ++repetition) {
      LoadGuard again(team);
      for (std::size_t i = begin; i < end; ++i) measure(kernels[i]);
      foreign = std::min(foreign, again.foreign());
    }
    if (foreign > tolerated_foreign_load) ++disturbed_bunches;
    profile.foreign_load = std::max(profile.foreign_load, foreign);
  }
  return profile;
}

}  // namespace stratplan
