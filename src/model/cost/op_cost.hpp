#pragma once
// What one op costs on a machine, and how well that is known.
#include "model/machine/kernel_estimate.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// measured at exactly this; interpolated between measurements of the same; estimated from rates.
enum class Tier : int { Measured, Interpolated, Estimated };

struct OpCost {
  Seconds seconds{};
  Tier tier = Tier::Estimated;
  /// measured, from one run to the next: what makes partners wait for each other; zero if estimated
  Seconds deviation{};
};

/// Time of an op alone, partners ready. Estimates are optimistic (a floor), so that planning on
/// them never hides a plan worth measuring.
OpCost cost_of(const Op& op, const Program& program, const MachineProfile& machine);
///   compute     the kernel's own measurement, else estimate_kernel
///   load        the copy of its region into the device's memory (load_kernel)
///   exchange    measured: per partner, one after the other, for all of a rank's messages pass its
///               one core; estimated: estimate_exchange, level by level
///   collective  collective_cost.hpp
OpCost cost_of(const Kernel& kernel, const MachineProfile& machine);

/// What a load amounts to: the data source has its samples at hand, and they are copied as they
/// are.
Kernel load_kernel(const LoadOp& load);

/// All that one rank exchanges with partners that it meets first at one level.
struct LevelTraffic {
  std::int64_t peers = 0;
  Bytes out{}, in{};
};
/// A latency per partner, and the longer direction's bytes at what each rank has of the level's
/// bandwidth if all ranks of a group send out of it at once.
Seconds estimate_exchange(std::size_t level, const LevelTraffic& traffic, const Topology& placement,
                          const MachineProfile& machine);

/// Messages of `out` and `in` bytes between two ranks at once: the part that both send at the price
/// of both_ways, what one sends beyond it at the further price of one_way. `ranks`: of the job,
/// which decides the level at which the two meet.
OpCost exchange_cost(int rank, int peer, Bytes out, Bytes in, int ranks,
                     const MachineProfile& machine);

}  // namespace stratplan
