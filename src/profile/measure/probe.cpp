#include "profile/measure/probe.hpp"

#include "model/partition/layers/local_kernel.hpp"
#include "profile/measure/sampler.hpp"
#include "runtime/exec/executor.hpp"

namespace stratplan {

Kernel square_convolution(std::int64_t samples, std::int64_t channels, std::int64_t extent,
                          std::int64_t window) {
  Kernel kernel{.kind = KernelKind::ConvolutionForward};
  kernel.x = kernel.y = {{samples, channels, 1, extent, extent}};
  for (const std::size_t axis : {1, 2})
    kernel.windows()[axis] = {window, 1, 1, window / 2, window / 2};
  return kernel;
}

Kernel copy_of(Bytes bytes) {
  const Region all = flat(bytes.value / size_of(DataType::F32));
  return copy_kernel(all, all, all, all, DataType::F32);
}

Measurement sample_program(const Program& program, Backend& backend, const Team& team,
                           const StoppingRule& rule) {
  const Network network;
  SyntheticData data(1);
  Executor executor(network, program, backend, team.between_backends(), data, {});
  if (backend.captures()) {
    executor.replay_ops();
    executor.run(0);  // the next run captures the program, and is the rehearsal of sample()
  }
  SteadyClock clock;
  return sample(
      clock, team, rule, true, [](int) {}, [&](int run) { executor.run(run); });
}

}  // namespace stratplan
