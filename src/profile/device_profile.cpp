#include "profile/device_profile.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "model/base/error.hpp"
#include "profile/kernel_profile.hpp"
#include "profile/measure/probe.hpp"
#include "profile/measure/sampler.hpp"
#include "profile/measure/stream_clock.hpp"

namespace stratplan {
namespace {

Kernel tiny() {
  Kernel kernel;
  kernel.x[Axis::C] = kernel.y[Axis::C] = 16;
  return kernel;
}

/// Returns a program of nothing but tiny kernels.
Program tiny_program(const Team& team) {
  constexpr std::size_t steps = 2000;
  Program program;
  program.rank = team.rank();
  program.ranks = team.size();
  Buffer buffer;
  buffer.name = "tiny";
  buffer.region = whole(tiny().y);
  program.buffers.push_back(buffer);
  const Op op{.reads = {}, .writes = {0}, .body = ComputeOp{tiny(), buffer.region, tiny().y}};
  program.ops.assign(steps, op);
  plan_buffers(program);
  return program;
}

/// Returns the executor's time per op. It is the time of tiny_program() per op, less the kernel's
/// time.
Measurement measure_step_overhead(Backend& backend, const Team& team, Seconds kernel,
                                  const StoppingRule& rule) {
  const Program program = tiny_program(team);
  Measurement overhead = sample_program(program, backend, team, rule);
  const double steps = static_cast<double>(program.ops.size());
  for (Seconds* value : {&overhead.median, &overhead.p10, &overhead.p90})
    *value = std::max(*value / steps - kernel, Seconds{});
  return overhead;
}

/// Returns the rate of uploads from the host's pinned memory, as all ranks upload at once.
double upload_rate(Backend& backend, const Team& team) {
  constexpr Bytes bytes{64 << 20};
  const DeviceMemory device = allocate(backend, bytes);
  const auto release = [&](void* memory) { backend.release_host(memory); };
  const std::unique_ptr<void, decltype(release)> host(backend.allocate_host(bytes), release);
  std::memset(host.get(), 1, static_cast<std::size_t>(bytes.value));  // now its pages exist
  StreamClock clock(backend);
  const Measurement upload = sample(
      clock, team, StoppingRule{}, true, [](int) {},
      [&](int) { backend.upload(Stream::Compute, device.get(), host.get(), bytes); });
  return static_cast<double>(bytes.value) / upload.median.value;
}

/// Kernels are tried from the smallest to the largest. Kernels that would take longer than this
/// time are left out, because smaller kernels have already shown the rate of so slow a backend.
constexpr Seconds long_enough{0.05};

class RateProbe {
 public:
  RateProbe(Backend& backend, const Team& team, Bytes largest)
      : backend_(backend), team_(team), buffers_(backend, largest, kernel_arena), clock_(backend) {}

  Seconds measure(const Kernel& kernel) {
    return summarize(sample_kernel(kernel, {}, backend_, buffers_, clock_, team_, rule).seconds)
        .median;
  }

  /// Returns the highest ratio of work to time among the kernels. `kernels` must be in ascending
  /// order of work.
  template <class Work>
  double best(const std::vector<Kernel>& kernels, const Work& work) {
    double best = 0;
    for (const Kernel& kernel : kernels) {
      if (best > 0 && work(kernel) / best > long_enough.value) break;
      best = std::max(best, work(kernel) / measure(kernel).value);
    }
    return best;
  }

  static constexpr StoppingRule rule{};

 private:
  Backend& backend_;
  const Team& team_;
  KernelBuffers buffers_;
  StreamClock clock_;
};

/// Whether the backend computes on numbers of this type.
bool computes_on(Backend& backend, Kernel kernel, DataType type) {
  kernel.type = type;
  try {
    backend.prepare(kernel);
    return true;
  } catch (const EnvironmentError&) {
    return false;
  }
}

}  // namespace

DeviceProfile profile_device(Backend& backend, const Team& team) {
  // The largest convolutions are for devices, because smaller ones do not keep a device busy. The
  // smallest convolutions already show a processor's rate.
  std::vector<Kernel> products{
      square_convolution(1, 64, 14, 3),     square_convolution(2, 64, 56, 3),
      square_convolution(4, 256, 14, 3),    square_convolution(512, 1024, 1, 1),
      square_convolution(2048, 2048, 1, 1), square_convolution(4096, 4096, 1, 1)};
  const std::vector<Kernel> copies{copy_of({1 << 18}), copy_of({1 << 20}), copy_of({8 << 20}),
                                   copy_of({64 << 20})};
  std::vector<Kernel> all = products;
  all.insert(all.end(), copies.begin(), copies.end());
  RateProbe probe(backend, team, largest_operands(all));
  const auto flops = [](const Kernel& kernel) { return kernel.flops().value; };
  DeviceProfile profile;
  profile.flops_per_s = probe.best(products, flops);
  profile.bytes_per_s = probe.best(
      copies, [](const Kernel& kernel) { return static_cast<double>(kernel.bytes().value); });
  profile.launch = probe.measure(tiny());
  for (const auto& [type, math] :
       {std::pair(DataType::F16, Math::Fp16), std::pair(DataType::BF16, Math::Bf16)}) {
    if (!backend.device() || !computes_on(backend, products.front(), type)) continue;
    for (Kernel& product : products) product.type = type;
    profile.math_flops_per_s[static_cast<std::size_t>(math)] = probe.best(products, flops);
  }
  if (backend.device()) profile.host_bytes_per_s = upload_rate(backend, team);
  profile.step_overhead = measure_step_overhead(backend, team, profile.launch, RateProbe::rule);
  return profile;
}

void describe_device(MachineProfile& machine, const DeviceProfile& profile,
                     const Backend& backend) {
  const auto info = backend.device();
  machine.device = {profile.flops_per_s, profile.bytes_per_s, profile.launch,
                    info ? info->memory : machine.device.memory};
  machine.device.host_bytes_per_s = profile.host_bytes_per_s;
  machine.device.math_flops_per_s = profile.math_flops_per_s;
  machine.step_overhead = profile.step_overhead;
}

}  // namespace stratplan
