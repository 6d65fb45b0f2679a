#pragma once
// Measures local kernels on all ranks at once, each in the circumstances that it meets in a
// program: its partners compute too, its weights and saved activations come from memory, its other
// input has just been written.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "profile/measure/kernel_runs.hpp"
#include "profile/measure/sampler.hpp"
#include "profile/measure/stream_clock.hpp"

namespace stratplan {

/// Called on every rank as measurements are made: so many of so many, and what comes next.
using Progress = std::function<void(std::size_t done, std::size_t total, const std::string& what)>;

struct KernelProfile {
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  double foreign_load =
      0;  ///< worst share of the machine that others had during a measurement that was kept
  double clock_share =
      1;  ///< least clock of the device at either end of one, relative to the highest until then
  double highest_clock = 0;  ///< cycles per second; 0: unknown
};

/// How often each kernel is measured, with all others between, and for how long. A machine's pace
/// changes within seconds: samples taken in one go would share its mood, and a search among
/// candidates would pick those that were lucky.
inline constexpr int kernel_visits = 3;
inline constexpr StoppingRule kernel_rule{.least_samples = 3,
                                          .least_expensive = 1,
                                          .most_samples = 200,
                                          .enough = {0.01},
                                          .patience = {0.05}};

/// The same on all ranks. Kernels are measured in bunches of about a second; a bunch during which
/// others used the machine is measured again, at most twice, and the least disturbed repetition
/// counts. Throws EnvironmentError: no memory.
KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend,
                              const Team& team, const Progress& progress);

/// Seconds, by rank, what did the work, and the scratch memory that it took.
struct KernelSamples {
  std::vector<std::vector<double>> seconds;
  std::string implementation;
  std::string choice;
  Bytes workspace{};
};

/// A device's events are as good as exact over so long; batches need not be longer.
inline constexpr Seconds well_timed{1e-3};

/// How many runs are worth timing at once where work is captured: nothing in a capture may run for
/// the first time, so two are launched before, and the second tells.
template <Clock AnyClock>
int runs_worth_timing(KernelRuns& runs, Backend& backend, AnyClock& clock, const Team& team) {
  runs.launch(0);
  const Seconds start = clock.now();
  runs.launch(1);
  const double one = team.greatest((clock.now() - start).value);
  return std::clamp(static_cast<int>(std::ceil(well_timed.value / std::max(one, 1e-9))), 1,
                    backend.runs_per_timing());
}

/// One kernel as it was prepared by one of the backend's choices; `buffers` are large enough for
/// it. What a backend can capture is timed as it is replayed.
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

/// Bytes of reads or writes, whichever are more, of the largest kernel.
Bytes largest_operands(const std::vector<Kernel>& kernels);

/// Long enough that what was written an arena ago has left every cache.
inline constexpr Bytes kernel_arena{256 << 20};

}  // namespace stratplan
