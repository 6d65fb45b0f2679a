#pragma once
// The cost of a collective: from measured tables where they exist, else as the communication
// library takes it (library_collective.hpp) where one is described, else from the formulas of the
// standard algorithms.
//
// Formulas with latency a per message, b seconds per byte between two ranks, c seconds per byte
// summed, p ranks and n bytes:
//   all-reduce      recursive doubling   ceil(lg p) (a + n b + n c)
//                   Rabenseifner         2 ceil(lg p) a + 2 (p-1)/p n b + (p-1)/p n c
//                   ring                 2 (p-1) a + 2 (p-1)/p n b + (p-1)/p n c
//   reduce-scatter  recursive halving    ceil(lg p) a + (p-1)/p n (b + c)
//                   pairwise exchange    (p-1) a + (p-1)/p n (b + c)
//   all-gather      Bruck                ceil(lg p) a + (p-1)/p n b
//                   ring                 (p-1) a + (p-1)/p n b
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations
// in MPICH, IJHPCA 19(1), 2005, sections 4.1, 4.4 and 4.5. If p is not a power of two, the paper
// adds terms to recursive doubling and halving. These terms are left out, since the formulas serve
// as lower bounds.
//
// For a group over several levels (GPUs of a node, nodes), the cheaper of two estimates counts:
//   flat          The fastest of the algorithms above over all members, at the latency of the
//                 outermost level. A ring leaves each node once. The rings of all groups with
//                 members in a node share the node's links.
//   hierarchical  A reduce-scatter among the group's m members in each node, then the operation on
//                 1/m of the bytes across nodes (by all m members at once), then an all-gather
//                 among the m members. A reduce-scatter leaves out the third part, and an
//                 all-gather leaves out the first part.
// Source: M. Cho, U. Finkler, M. Serrano, D. Kung, H. Hunter, BlueConnect: Decomposing all-reduce
// for deep learning on heterogeneous network hierarchy, MLSys 2019.
#include "model/cost/op_cost.hpp"
#include "model/partition/program/group_shape.hpp"

namespace stratplan {

/// The time of the fastest algorithm for `bytes` (as CollectiveOp::bytes) over `members` ranks of
/// one level.
Seconds estimate_collective(Collective op, Bytes bytes, int members, const Level& level,
                            const DeviceRates& device);
/// The time of the library, or of the fastest algorithm, for a group over several levels. All ranks
/// of the job form groups of this shape, and all groups communicate at the same time. `placement`:
/// MachineProfile::placement of the job.
Seconds estimate_collective(Collective op, Bytes bytes, const GroupShape& shape,
                            const Topology& placement, const MachineProfile& machine);

/// The measured cost if the machine has a table for groups of this shape, otherwise the estimate.
OpCost collective_cost(Collective op, DataType type, Bytes bytes, const GroupShape& shape,
                       const Topology& placement, const MachineProfile& machine);
/// `ranks`: the number of ranks in the job, which decides where they lie on the machine.
OpCost collective_cost(const CollectiveOp& op, int ranks, const MachineProfile& machine);

/// Returns whether kernels can run beside a collective. NCCL's run on streams. Between hosts, the
/// communicators block in all but all-reduces of gradients (runtime/comm/mpi).
bool runs_beside_kernels(Collective op, Stream stream, const MachineProfile& machine);

/// The number of the job's ranks in one group of the level just inside `level`. These ranks share
/// the group's links.
int ranks_within(const Topology& placement, std::size_t level);
/// The bandwidth, in bytes per second, of one of `flows` transfers that leave a group at once.
double shared_bandwidth(const Level& level, int flows);

/// ceil(lg p): the number of steps of algorithms that double the ranks reached in each step.
double doublings(int members);

}  // namespace stratplan
