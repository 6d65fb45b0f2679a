#pragma once
// The cost of one op on a machine, and how certain that cost is.
#include "model/machine/kernel_estimate.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

struct OpCost {
  Seconds seconds{};
  Tier tier = Tier::DataSheet;
  /// standard deviation of `seconds` from one run to the next; zero if not measured. The simulator
  /// derives from it how long partners wait for each other.
  Seconds deviation{};
  /// of an estimate that measured kernels correct: the standard deviation of
  /// ln(measured / estimated); else zero
  double doubt = 0;
};

/// The time of an op alone, with its partners ready. Estimates of a machine of which nothing was
/// measured are optimistic lower bounds, so an estimate never hides a plan that is worth measuring.
/// Where kernels were measured, they correct the estimates of their family
/// (MachineProfile::speeds). A kernel that was measured with another number of busy ranks is
/// estimated from that (MachineProfile::borrowed).
///   compute     the kernel's own measurement, else estimate_kernel
///   load        cost_of the LoadOp
///   exchange    if measured, the sum of exchange_cost over the partners, since all messages of a
///               rank pass through its one core; else the sum of estimate_exchange over the levels
///   collective  collective_cost (collective_cost.hpp)
OpCost cost_of(const Op& op, const Program& program, const MachineProfile& machine);
/// The kernel's own measurement, else estimate_kernel. MachineProfile::drift_factor() and the
/// software's factors scale both. The time to map the pages of its result is added.
OpCost cost_of(const Kernel& kernel, const MachineProfile& machine);
/// The bytes of the kernel's result that the software maps anew in each step (Software::mapping).
Bytes mapped_bytes(const Kernel& kernel, const MachineProfile& machine);

/// The time to bring a load's region into the device's memory: at DeviceRates::host_bytes_per_s if
/// stated, else as long as load_kernel(). Frameworks upload a batch while they compute the one
/// before it, so to them host_bytes_per_s does not apply.
OpCost cost_of(const LoadOp& load, const MachineProfile& machine);
/// The copy kernel that stands for a load. The data source already holds the samples, and the load
/// copies them unchanged.
Kernel load_kernel(const LoadOp& load);

/// The traffic between one rank and the partners that it meets at one level
/// (MachineProfile::meeting_level): the number of partners, and the bytes in each direction.
struct LevelTraffic {
  std::int64_t peers = 0;
  Bytes out{}, in{};
};
/// Returns one latency per partner, plus the time of the direction with more bytes at the rank's
/// share of the level's bandwidth. The share assumes that all ranks of a group send out of the
/// group at once.
Seconds estimate_exchange(std::size_t level, const LevelTraffic& traffic, const Topology& placement,
                          const MachineProfile& machine);

/// The cost of simultaneous messages of `out` and `in` bytes between two ranks. The table
/// MachineProfile::both_ways gives the cost up to the length of the shorter message. The table
/// one_way gives the additional cost of the rest of the longer message. Without measurements at the
/// level at which the ranks meet, the cost is estimate_exchange. `ranks`: the number of ranks in
/// the job, which decides that level.
OpCost exchange_cost(int rank, int peer, Bytes out, Bytes in, int ranks,
                     const MachineProfile& machine);

}  // namespace stratplan
