#include "profile/kernel_profile.hpp"

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/machine/kernel_estimate.hpp"
#include "profile/measure/load_guard.hpp"
#include "profile/measure/stream_clock.hpp"

namespace stratplan {
namespace {

constexpr Seconds bunch_time{1.0};
constexpr int most_attempts = 3;
/// After this many disturbed bunches, no bunch is repeated any more. Such a machine is never idle
/// or never cool, and is measured as it is.
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

namespace {

/// Measures kernels bunch by bunch, and collects their samples.
class KernelVisits {
 public:
  KernelVisits(const std::vector<Kernel>& kernels, Backend& backend, const Team& team,
               const Progress& progress)
      : kernels_(kernels),
        backend_(backend),
        team_(team),
        progress_(progress),
        buffers_(backend, largest_operands(kernels), kernel_arena),
        clock_(backend),
        watch_(backend, team),
        samples_(kernels.size()) {
    for (KernelSamples& samples : samples_)
      samples.seconds.resize(static_cast<std::size_t>(team.size()));
  }

  /// Measures one bunch of kernels from index `begin` on. Returns the index at which the next bunch
  /// begins.
  std::size_t visit(std::size_t begin) {
    std::size_t end = kernels_.size();
    const auto best = least_disturbed(
        team_, disturbed_bunches_ < most_disturbed_bunches ? most_attempts : 1,
        [&](int) {
          Bunch bunch = measure(begin, end);
          end = begin + bunch.size();
          return bunch;
        },
        &watch_);
    if (best.disturbance() > 1) ++disturbed_bunches_;
    foreign_load_ = std::max(foreign_load_, best.foreign);
    clock_share_ = std::min(clock_share_, best.clock_share);
    for (std::size_t i = 0; i < best.result.size(); ++i) add(samples_[begin + i], best.result[i]);
    done_ += best.result.size();
    return end;
  }

  KernelProfile summary() const {
    KernelProfile profile{{}, foreign_load_, clock_share_, watch_.highest()};
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      Measurement measurement = summarize(samples_[i].seconds);
      measurement.implementation = samples_[i].implementation;
      measurement.choice = samples_[i].choice;
      measurement.workspace = samples_[i].workspace;
      measurement.others = samples_[i].others;
      profile.kernels.emplace(kernels_[i].key(), measurement);
    }
    return profile;
  }

 private:
  using Bunch = std::vector<KernelSamples>;

  Bunch measure(std::size_t begin, std::size_t end) {
    Bunch bunch;
    const Seconds began = clock_.now();
    for (std::size_t i = begin;
         i < end && (i == begin || team_.greatest((clock_.now() - began).value) < bunch_time.value);
         ++i) {
      if (progress_)
        progress_((done_ + bunch.size()) / kernel_visits, kernels_.size(), kernels_[i].key());
      const bool first = samples_[i].implementation.empty();
      const std::string choice = first ? choose(i) : samples_[i].choice;
      bunch.push_back(sample_kernel(kernels_[i], choice, backend_, buffers_, clock_, team_,
                                    kernel_rule, first));
    }
    return bunch;
  }

  /// Returns the fastest of the backend's choices, by a few samples each. The samples are then
  /// discarded, because the fastest choice may owe its place to a fast moment. The choice that the
  /// backend prefers stays unless another choice is clearly faster. The medians of the few choices
  /// of a processor are kept, for software that has other ones. Devices have dozens.
  std::string choose(std::size_t index) {
    const Kernel& kernel = kernels_[index];
    constexpr StoppingRule trial{.least_samples = 3,
                                 .least_expensive = 1,
                                 .most_samples = 10,
                                 .enough = {0.003},
                                 .patience = {0.03}};
    constexpr double clearly = 0.97;
    std::string best;
    Seconds least{};
    std::map<std::string, Seconds> tried;
    for (const std::string& choice : backend_.choices(kernel)) {
      const std::optional<Seconds> taken = try_out(kernel, choice, trial);
      if (taken) tried.emplace(choice, *taken);
      if (!taken || (!best.empty() && taken->value >= clearly * least.value)) continue;
      best = choice;
      least = *taken;
    }
    tried.erase(best);
    if (!backend_.captures()) samples_[index].others = std::move(tried);
    return best;
  }

  /// Returns the choice's median time, or nothing if the kernel does not run on some rank's device.
  /// A failure may show only when the kernel runs.
  std::optional<Seconds> try_out(const Kernel& kernel, const std::string& choice,
                                 const StoppingRule& rule) {
    std::unique_ptr<PreparedKernel> prepared;
    bool fails = false;
    try {
      prepared = backend_.prepare(kernel, choice);
      if (backend_.captures()) run_once(kernel, *prepared);
    } catch (const EnvironmentError&) {
      fails = true;
    }
    if (team_.greatest(fails ? 1 : 0) > 0) return std::nullopt;
    return summarize(
               sample_kernel(kernel, *prepared, choice, backend_, buffers_, clock_, team_, rule)
                   .seconds)
        .median;
  }

  /// Launches the kernel, then captures and replays it.
  void run_once(const Kernel& kernel, PreparedKernel& prepared) {
    KernelRuns runs(kernel, prepared, backend_, buffers_);
    runs.launch(0);
    runs.batch(1);
    runs.prepare(0);
    runs.run(0);
    backend_.synchronize(Stream::Compute);
  }

  static void add(KernelSamples& all, const KernelSamples& more) {
    for (std::size_t rank = 0; rank < more.seconds.size(); ++rank)
      all.seconds[rank].insert(all.seconds[rank].end(), more.seconds[rank].begin(),
                               more.seconds[rank].end());
    all.implementation = more.implementation;
    all.choice = more.choice;
    all.workspace = more.workspace;
  }

  const std::vector<Kernel>& kernels_;
  Backend& backend_;
  const Team& team_;
  const Progress& progress_;
  KernelBuffers buffers_;
  StreamClock clock_;
  ClockWatch watch_;
  std::vector<KernelSamples> samples_;  ///< by kernel
  std::size_t done_ = 0;                ///< kernels measured, over all visits
  int disturbed_bunches_ = 0;
  double foreign_load_ = 0, clock_share_ = 1;
};

}  // namespace

KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend,
                              const Team& team, const Progress& progress) {
  if (kernels.empty()) return {};
  KernelVisits visits(kernels, backend, team, progress);
  for (std::size_t visit = 0; visit < kernel_visits; ++visit)
    for (std::size_t begin = 0; begin < kernels.size();) begin = visits.visit(begin);
  return visits.summary();
}

void learn_speeds(MachineProfile& machine, const std::vector<Kernel>& kernels,
                  const KernelProfile& measured) {
  for (const Kernel& kernel : kernels) {
    const Measurement& measurement = measured.kernels.at(kernel.key());
    machine.speeds.add(kernel, measurement.median / measurement.drift,
                       estimate_kernel(kernel, machine.device));
  }
}

}  // namespace stratplan
