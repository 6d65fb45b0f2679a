#pragma once
// Measures local kernels on all ranks at once, each in the circumstances that it meets in a program: its partners compute too, its weights and saved
// activations come from memory, its other input has just been written.
#include <functional>
#include <string>
#include <vector>

#include "model/cost/machine_profile.hpp"
#include "profile/kernel_buffers.hpp"
#include "profile/sampler.hpp"

namespace stratplan {

/// Called on every rank as measurements are made: so many of so many, and what comes next.
using Progress = std::function<void(std::size_t done, std::size_t total, const std::string& what)>;

struct KernelProfile {
  std::map<std::string, Measurement> kernels;  ///< by Kernel::key()
  double foreign_load = 0;                     ///< worst share of the machine that others had during a measurement that was kept
};

/// How often each kernel is measured, with all others between, and for how long. A machine's pace changes within seconds: samples taken in one go would
/// share its mood, and a search among candidates would pick those that were lucky.
inline constexpr int kernel_visits = 3;
inline constexpr StoppingRule kernel_rule{.least_samples = 3, .least_expensive = 1, .most_samples = 200, .enough = {0.01}, .patience = {0.05}};

/// The same on all ranks. Kernels are measured in bunches of about a second; a bunch during which others used the machine is measured again, at most
/// twice, and the least disturbed repetition counts. Throws EnvironmentError: no memory.
KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend, const Team& team, const Progress& progress);

/// Seconds, by rank, what did the work, and the scratch memory that it took.
struct KernelSamples {
  std::vector<std::vector<double>> seconds;
  std::string implementation;
  std::string choice;
  Bytes workspace{};
};

/// One kernel by one of the backend's choices; `buffers` are large enough for it.
template <Clock AnyClock>
KernelSamples sample_kernel(const Kernel& kernel, const std::string& choice, Backend& backend, KernelBuffers& buffers, AnyClock& clock,
                            const Team& team, const StoppingRule& rule, bool rehearse = true) {
  const std::unique_ptr<PreparedKernel> prepared = backend.prepare(kernel, choice);
  void* workspace = buffers.workspace(prepared->workspace());
  buffers.arrange(kernel);
  KernelContext context;
  context.layer = "profile";
  context.global = kernel.y;
  context.region = whole(kernel.y);
  context.now = buffers.first_step();
  context.momentum = 0.9;
  const auto refresh = [&](int run) { buffers.refresh(kernel, run); };
  const int at_once = backend.runs_per_timing();
  const auto execute = [&](int run) {
    for (int i = 0; i < at_once; ++i) {
      const KernelBuffers::Set& set = buffers.set(run * at_once + i);
      backend.enqueue(Track::Compute, *prepared, set.reads, set.writes, workspace, context);
    }
  };
  auto seconds = take_samples(clock, team, rule, true, refresh, execute, rehearse);
  for (std::vector<double>& of_rank : seconds)
    for (double& sample : of_rank) sample /= at_once;
  return {std::move(seconds), prepared->implementation(), choice, prepared->workspace()};
}

/// Bytes of reads or writes, whichever are more, of the largest kernel.
Bytes largest_operands(const std::vector<Kernel>& kernels);

/// Long enough that what was written an arena ago has left every cache.
inline constexpr Bytes kernel_arena{256 << 20};

}  // namespace stratplan
