#pragma once
// Measures local kernels on all ranks at once, under the conditions of a program. All ranks
// compute, weights and saved activations come from memory, and the remaining input has just been
// written.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "profile/measure/kernel_runs.hpp"
#include "profile/measure/sampler.hpp"
#include "profile/measure/stream_clock.hpp"

namespace stratplan {

/// Called on every rank before each measurement, with the number of kernels done, the number of
/// kernels in total, and the name of the next measurement.
using Progress = std::function<void(std::size_t done, std::size_t total, const std::string& what)>;

struct KernelProfile {
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  /// largest share of the machine that other processes used during a measurement that was kept
  double foreign_load = 0;
  /// lowest clock of the device before or after a measurement that was kept, relative to the
  /// highest clock seen
  double clock_share = 1;
  double highest_clock = 0;  ///< in cycles per second, or 0 if unknown
};

/// Each kernel is measured in this many visits, with all other kernels in between. kernel_rule is
/// the stopping rule of one visit. A machine's speed changes within seconds, so samples of a single
/// visit would share this noise. A search among candidates would then pick kernels that were
/// measured in a fast moment.
inline constexpr int kernel_visits = 3;
inline constexpr StoppingRule kernel_rule{.least_samples = 3,
                                          .least_expensive = 1,
                                          .most_samples = 200,
                                          .enough = {0.01},
                                          .patience = {0.05}};

/// Measures the kernels. The result is the same on all ranks. Kernels are measured in bunches of
/// about a second. A bunch is disturbed if other processes used the machine, or if the device
/// lowered its clock. A disturbed bunch is measured again, at most twice, and the least disturbed
/// attempt counts. Throws EnvironmentError if memory runs out.
KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend,
                              const Team& team, const Progress& progress);

/// Adds to MachineProfile::speeds what the kernels take relative to their estimates.
void learn_speeds(MachineProfile& machine, const std::vector<Kernel>& kernels,
                  const KernelProfile& measured);

/// The samples of one kernel in seconds, by rank, with the implementation that was measured and its
/// scratch memory.
struct KernelSamples {
  std::vector<std::vector<double>> seconds;
  std::string implementation;
  std::string choice;
  Bytes workspace{};
  std::map<std::string, Seconds> others{};  ///< Measurement::others
};

/// A device's events are accurate enough over this time, so batches need not be longer.
inline constexpr Seconds well_timed{1e-3};

/// Returns how many runs to time at once where the backend captures work. Two runs are launched
/// first, because a kernel's first run must not be captured. The second run's time decides.
template <Clock AnyClock>
int runs_worth_timing(KernelRuns& runs, Backend& backend, AnyClock& clock, const Team& team) {
  runs.launch(0);
  const Seconds start = clock.now();
  runs.launch(1);
  const double one = team.greatest((clock.now() - start).value);
  return std::clamp(static_cast<int>(std::ceil(well_timed.value / std::max(one, 1e-9))), 1,
                    backend.runs_per_timing());
}

/// Takes samples of one prepared kernel. `choice`: the backend's choice with which `prepared` was
/// made. `buffers` must be large enough for the kernel. Where the backend captures work, replays
/// are timed.
template <StreamTime AnyClock>
KernelSamples sample_kernel(const Kernel& kernel, PreparedKernel& prepared,
                            const std::string& choice, Backend& backend, KernelBuffers& buffers,
                            AnyClock& clock, const Team& team, const StoppingRule& rule,
                            bool rehearse = true) {
  KernelRuns runs(kernel, prepared, backend, buffers);
  runs.batch(backend.captures() ? runs_worth_timing(runs, backend, clock, team)
                                : backend.runs_per_timing());
  const auto prepare = [&](int sample) { runs.prepare_sample(sample); };
  const auto execute = [&](int sample) { runs.run_sample(sample, [&] { clock.leave_out(); }); };
  auto seconds = take_samples(clock, team, rule, true, prepare, execute, rehearse);
  for (std::vector<double>& of_rank : seconds)
    for (double& sample : of_rank) sample /= runs.at_once();
  return {std::move(seconds), prepared.implementation(), choice, prepared.workspace()};
}
template <StreamTime AnyClock>
KernelSamples sample_kernel(const Kernel& kernel, const std::string& choice, Backend& backend,
                            KernelBuffers& buffers, AnyClock& clock, const Team& team,
                            const StoppingRule& rule, bool rehearse = true) {
  return sample_kernel(kernel, *backend.prepare(kernel, choice), choice, backend, buffers, clock,
                       team, rule, rehearse);
}

/// Returns the size of the largest set of operands that one of the kernels reads, or that one
/// writes. The size includes padding.
Bytes largest_operands(const std::vector<Kernel>& kernels);

/// Size of an arena of kernel buffers. Data that was written so many bytes ago has left every
/// cache.
inline constexpr Bytes kernel_arena{256 << 20};

}  // namespace stratplan
