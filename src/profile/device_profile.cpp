#include "profile/device_profile.hpp"

#include <algorithm>

#include "profile/kernel_profile.hpp"
#include "profile/probe.hpp"
#include "profile/stream_clock.hpp"

namespace stratplan {
namespace {

Kernel copy(std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::CopyRegion;
  kernel.x[Axis::C] = bytes / 4;
  kernel.y = kernel.region = kernel.x;
  return kernel;
}

Kernel tiny() {
  Kernel kernel;
  kernel.x[Axis::C] = kernel.y[Axis::C] = 16;
  return kernel;
}

/// A program of nothing but tiny kernels.
Program tiny_program(const Team& team) {
  constexpr std::size_t steps = 2000;
  Program program;
  program.rank = team.rank();
  program.ranks = team.size();
  Buffer buffer;
  buffer.name = "tiny";
  buffer.region = whole(tiny().y);
  program.buffers.push_back(buffer);
  const Step step{.reads = {}, .writes = {0}, .body = ComputeStep{tiny(), buffer.region, tiny().y}};
  program.steps.assign(steps, step);
  plan_buffers(program);
  return program;
}

/// Executes it and takes off what the kernels themselves take.
Measurement measure_step_overhead(Backend& backend, const Team& team, Seconds kernel, const StoppingRule& rule) {
  const Program program = tiny_program(team);
  Measurement overhead = sample_program(program, backend, team, rule);
  const double steps = static_cast<double>(program.steps.size());
  for (Seconds* value : {&overhead.median, &overhead.p10, &overhead.p90}) *value = std::max(*value / steps - kernel, Seconds{});
  return overhead;
}

}  // namespace

DeviceProfile profile_device(Backend& backend, const Team& team) {
  // Ascending; a slow backend has shown what it can do before the last.
  const std::vector<Kernel> products{square_convolution(1, 64, 14, 3), square_convolution(2, 64, 56, 3), square_convolution(4, 256, 14, 3),
                                     square_convolution(512, 1024, 1, 1)};
  const std::vector<Kernel> copies{copy(1 << 18), copy(1 << 20), copy(8 << 20), copy(64 << 20)};
  constexpr Seconds long_enough{0.05};
  std::vector<Kernel> all = products;
  all.insert(all.end(), copies.begin(), copies.end());
  KernelBuffers buffers(backend, largest_operands(all), kernel_arena);
  StreamClock clock(backend);
  const StoppingRule rule;
  const auto measure = [&](const Kernel& kernel) { return summarize(sample_kernel(kernel, {}, backend, buffers, clock, team, rule).seconds).median; };
  /// The best of work / time.
  const auto best_rate = [&](const std::vector<Kernel>& kernels, const auto& work) {
    double best = 0;
    for (const Kernel& kernel : kernels) {
      const Seconds seconds = measure(kernel);
      best = std::max(best, work(kernel) / seconds.value);
      if (seconds > long_enough) break;
    }
    return best;
  };
  DeviceProfile profile;
  profile.flops_per_s = best_rate(products, [](const Kernel& kernel) { return kernel.flops().value; });
  profile.bytes_per_s = best_rate(copies, [](const Kernel& kernel) { return static_cast<double>(kernel.bytes().value); });
  profile.launch = measure(tiny());
  profile.step_overhead = measure_step_overhead(backend, team, profile.launch, rule);
  return profile;
}

}  // namespace stratplan
