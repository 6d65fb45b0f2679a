#include "profile/interference_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/assert.hpp"
#include "model/base/statistics.hpp"
#include "profile/kernel_profile.hpp"
#include "profile/measure/probe.hpp"

namespace stratplan {
namespace {

constexpr std::array block_counts{8, 16, 32};
constexpr int usual_blocks = 16;
constexpr int rounds = 5;
/// Kernels run this long at a time, so that a small offset between the starts of kernels and
/// traffic does not matter.
constexpr Seconds stretch{2e-3};
constexpr int most_runs = 200;
/// Size of each of the two buffers between which traffic copies. It is larger than any cache.
constexpr Bytes traffic_buffer{128 << 20};
/// Duration of the traffic, in multiples of the time that the kernels take alone. It is doubled
/// each time that the kernels outlast the traffic, up to last_lasting.
constexpr double first_lasting = 2, last_lasting = 32;

class Emulation {
 public:
  Emulation(Backend& backend, std::span<const Kernel> kernels)
      : backend_(backend),
        buffers_(backend, largest_operands({kernels.begin(), kernels.end()}), kernel_arena),
        to_(allocate(backend, traffic_buffer)),
        from_(allocate(backend, traffic_buffer)) {
    const Noise noise(backend, true);
    noise.write(from_.get(), traffic_buffer);
  }

  struct Beside {
    Seconds kernels{};  ///< time that the kernels took
    double copied_bytes_per_s = 0;
  };

  /// One kernel, prepared for repeated runs.
  class Runs {
   public:
    Runs(Emulation& emulation, const Kernel& kernel)
        : emulation_(emulation),
          kernel_(kernel),
          prepared_(emulation.backend_.prepare(kernel)),
          runs_(kernel_, *prepared_, emulation.backend_, emulation.buffers_) {
      runs_.launch(0);  // the first run must not be captured
      runs_.batch(1);
      const Seconds one = alone();
      runs_.batch(std::clamp(static_cast<int>(std::ceil(stretch.value / std::max(one.value, 1e-9))),
                             1, most_runs));
      alone();
    }
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    Seconds alone() {
      runs_.prepare(batch_);
      return emulation_.timed([&] { runs_.run(batch_++); });
    }

    /// Times the kernels beside traffic that outlasts them. `alone`: the kernels' time without
    /// traffic.
    Beside beside(EmulatedTraffic traffic, Seconds alone) {
      for (double lasting = first_lasting;; lasting *= 2) {
        traffic.bytes = {static_cast<std::int64_t>(traffic.bytes_per_s * alone.value * lasting)};
        runs_.prepare(batch_);
        Beside beside;
        const bool lasted = emulation_.beside(
            traffic, [&] { runs_.run(batch_++); }, beside);
        if (lasted || lasting >= last_lasting) return beside;
      }
    }

   private:
    Emulation& emulation_;
    Kernel kernel_;
    std::unique_ptr<PreparedKernel> prepared_;
    KernelRuns runs_;
    int batch_ = 0;
  };

 private:
  template <class Run>
  Seconds timed(const Run& run) {
    begins_ = backend_.record(Stream::Compute, begins_);
    run();
    ends_ = backend_.record(Stream::Compute, ends_);
    backend_.synchronize(Stream::Compute);
    return backend_.elapsed(begins_, ends_);
  }

  /// Returns whether the traffic outlasted the kernels.
  template <class Run>
  bool beside(const EmulatedTraffic& traffic, const Run& run, Beside& beside) {
    traffic_begins_ = backend_.record(Stream::Gradient, traffic_begins_);
    backend_.enqueue_traffic(Stream::Gradient, traffic, to_.get(), from_.get(), traffic_buffer);
    traffic_ends_ = backend_.record(Stream::Gradient, traffic_ends_);
    backend_.wait(Stream::Compute, traffic_begins_);
    beside.kernels = timed(run);
    backend_.synchronize(Stream::Gradient);
    const Seconds lasted = backend_.elapsed(traffic_begins_, traffic_ends_);
    beside.copied_bytes_per_s =
        static_cast<double>(traffic.bytes.value) / std::max(lasted.value, 1e-9);
    return backend_.elapsed(traffic_begins_, ends_) <= lasted;
  }

  Backend& backend_;
  KernelBuffers buffers_;
  DeviceMemory to_, from_;
  Backend::Event begins_ = Backend::none, ends_ = Backend::none, traffic_begins_ = Backend::none,
                 traffic_ends_ = Backend::none;
};

/// Samples of one kernel, one per round. `alone` holds seconds without traffic. For each number of
/// blocks, `beside` holds seconds beside traffic, and `copied` holds the bytes per second that the
/// traffic copied.
struct Samples {
  std::vector<double> alone;
  std::array<std::vector<double>, block_counts.size()> beside, copied;
};

Samples sample(Emulation& emulation, const Kernel& kernel, double bytes_per_s) {
  Emulation::Runs runs(emulation, kernel);
  Samples samples;
  for (int round = 0; round < rounds; ++round) {
    const Seconds alone = runs.alone();
    samples.alone.push_back(alone.value);
    for (std::size_t row = 0; row < block_counts.size(); ++row) {
      const Emulation::Beside beside = runs.beside(
          {.blocks = block_counts[row], .bytes = {}, .bytes_per_s = bytes_per_s}, alone);
      samples.beside[row].push_back(beside.kernels.value);
      samples.copied[row].push_back(beside.copied_bytes_per_s);
    }
  }
  return samples;
}

}  // namespace

std::vector<Kernel> kernels_interfered_with() {
  return {square_convolution(32, 256, 28, 3), copy_of({64 << 20})};
}

std::vector<Interference> profile_interference(Backend& backend, std::span<const Kernel> kernels,
                                               double bytes_per_s) {
  if (!backend.emulates_traffic() || backend.clock() == 0) return {};
  std::vector<Interference> rows;
  for (const int blocks : block_counts)
    rows.push_back(
        {.blocks = blocks, .bytes_per_s = bytes_per_s, .copied_bytes_per_s = 0, .slowdowns = {}});
  Emulation emulation(backend, kernels);
  for (const Kernel& kernel : kernels) {
    const Samples samples = sample(emulation, kernel, bytes_per_s);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows[row].slowdowns[kernel.key()] = median(samples.beside[row]) / median(samples.alone);
      rows[row].copied_bytes_per_s +=
          median(samples.copied[row]) / static_cast<double>(kernels.size());
    }
  }
  return rows;
}

double hidden_beside_traffic(std::span<const Interference> rows) {
  const auto row = std::ranges::find(rows, usual_blocks, &Interference::blocks);
  SP_ASSERT(row != rows.end() && !row->slowdowns.empty(),
            "found no slowdowns beside {} blocks in {} rows of interference", usual_blocks,
            rows.size());
  double done = 0;
  for (const auto& [kernel, slowdown] : row->slowdowns) done += std::min(1 / slowdown, 1.0);
  return done / static_cast<double>(row->slowdowns.size());
}

}  // namespace stratplan
