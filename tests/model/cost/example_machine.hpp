#pragma once
// A machine with round numbers, and programs short enough to price by hand.
#include <cmath>

#include "model/machine/machine_profile.hpp"

namespace stratplan {

/// Two nodes of four cores. 1 Gflop/s, 1 GB/s, no launch time. 1 us and 1 GB/s within a node, 10 us
/// and 0.1 GB/s across nodes.
inline MachineProfile round_machine() {
  MachineProfile machine;
  machine.name = "round";
  machine.levels = {{"node", 2, {10e-6}, 1e8}, {"core", 4, {1e-6}, 1e9}};
  machine.device = {1e9, 1e9, {0}, {1 << 30}};
  return machine;
}

/// Returns the three quantiles for which Swanson's rule (0.3, 0.4, 0.3) gives this mean and
/// deviation.
inline Measurement measured(double seconds, double deviation = 0) {
  const double spread = deviation / std::sqrt(0.6);
  return {{seconds}, {seconds - spread}, {seconds + spread}, 9, "test", ""};
}

/// Returns a kernel that writes `elements` bytes, for which the machine's estimate is `elements`
/// nanoseconds.
inline Kernel fill_of(std::int64_t elements) {
  Kernel kernel{.kind = KernelKind::Fill};
  kernel.type = DataType::F32;
  kernel.x[Axis::C] = kernel.y[Axis::C] = elements / 4;
  return kernel;
}

inline Op compute_op(const Kernel& kernel) {
  return {.reads = {}, .writes = {}, .body = ComputeOp{kernel, {}, {}}};
}

inline Op exchange_op(int tag, std::vector<Message> sends, std::vector<Message> receives) {
  return {.stream = Stream::Halo,
          .reads = {},
          .writes = {},
          .body = ExchangeOp{std::move(sends), std::move(receives), tag}};
}

inline Op all_reduce_op(std::vector<int> group, std::int64_t count) {
  return {
      .stream = Stream::Gradient,
      .reads = {},
      .writes = {},
      .body = CollectiveOp{Collective::AllReduce, std::move(group), DataType::F32, 0, count, {}}};
}

inline std::vector<Program> programs_of(std::vector<std::vector<Op>> ops) {
  std::vector<Program> programs;
  for (std::size_t rank = 0; rank < ops.size(); ++rank) {
    Program& program = programs.emplace_back();
    program.rank = static_cast<int>(rank);
    program.ranks = static_cast<int>(ops.size());
    program.ops = std::move(ops[rank]);
  }
  return programs;
}

}  // namespace stratplan
