#include "profile/kernel_profile.hpp"

#include <algorithm>

#include "profile/load_guard.hpp"

namespace stratplan {
namespace {

constexpr Seconds bunch_time{1.0};
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

namespace {

/// Measures bunch by bunch, and collects.
class KernelVisits {
 public:
  KernelVisits(const std::vector<Kernel>& kernels, Backend& backend, const Team& team)
      : kernels_(kernels), backend_(backend), team_(team), buffers_(backend, largest_operands(kernels), kernel_arena), samples_(kernels.size()) {
    for (KernelSamples& samples : samples_) samples.seconds.resize(static_cast<std::size_t>(team.size()));
  }

  /// One bunch that begins with this kernel. Returns where the next one begins.
  std::size_t visit(std::size_t begin) {
    Bunch best = measure(begin, kernels_.size());
    for (int repetition = 0; best.foreign > tolerated_foreign_load && repetition < most_repetitions && disturbed_bunches_ < most_disturbed_bunches; ++repetition) {
      Bunch again = measure(begin, begin + best.samples.size());
      if (again.foreign < best.foreign) best = std::move(again);
    }
    if (best.foreign > tolerated_foreign_load) ++disturbed_bunches_;
    foreign_load_ = std::max(foreign_load_, best.foreign);
    for (std::size_t i = 0; i < best.samples.size(); ++i) add(samples_[begin + i], best.samples[i]);
    return begin + best.samples.size();
  }

  KernelProfile summary() const {
    KernelProfile profile{{}, foreign_load_};
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      Measurement measurement = summarize(samples_[i].seconds);
      measurement.implementation = samples_[i].implementation;
      profile.kernels.emplace(kernels_[i].key(), measurement);
    }
    return profile;
  }

 private:
  struct Bunch {
    std::vector<KernelSamples> samples;
    double foreign = 0;
  };

  Bunch measure(std::size_t begin, std::size_t end) {
    Bunch bunch;
    const LoadGuard guard(team_);
    for (std::size_t i = begin; i < end && (i == begin || team_.greatest(guard.elapsed().value) < bunch_time.value); ++i)
      bunch.samples.push_back(sample_kernel(kernels_[i], backend_, buffers_, clock_, team_, kernel_rule, samples_[i].implementation.empty()));
    bunch.foreign = guard.foreign();
    return bunch;
  }

  static void add(KernelSamples& all, const KernelSamples& more) {
    for (std::size_t rank = 0; rank < more.seconds.size(); ++rank) all.seconds[rank].insert(all.seconds[rank].end(), more.seconds[rank].begin(), more.seconds[rank].end());
    all.implementation = more.implementation;
  }

  const std::vector<Kernel>& kernels_;
  Backend& backend_;
  const Team& team_;
  KernelBuffers buffers_;
  SteadyClock clock_;
  std::vector<KernelSamples> samples_;  ///< by kernel
  int disturbed_bunches_ = 0;
  double foreign_load_ = 0;
};

}  // namespace

KernelProfile profile_kernels(const std::vector<Kernel>& kernels, Backend& backend, const Team& team, const Progress& progress) {
  if (kernels.empty()) return {};
  KernelVisits visits(kernels, backend, team);
  for (std::size_t visit = 0; visit < kernel_visits; ++visit) {
    for (std::size_t begin = 0; begin < kernels.size();) {
      if (progress) progress((visit * kernels.size() + begin) / kernel_visits, kernels.size(), kernels[begin].key());
      begin = visits.visit(begin);
    }
  }
  return visits.summary();
}

}  // namespace stratplan
