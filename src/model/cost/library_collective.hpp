#pragma once
// The time of a collective as a library's algorithms and protocols take it
// (machine/collective_rates.hpp), the fastest of which counts. The structure is that of NCCL's own
// cost model (src/graph/tuning.cc). The numbers are fitted to published measurements.
//
// With p members in all, m_l members at level l, g_l = the product of the members of all levels
// outside l, n bytes, k = 2 for an all-reduce and 1 for its halves:
//   ring       k g_l (m_l - 1) hops cross level l;  k (p-1)/p n bytes at the narrowest level
//   tree       all-reduce: 2 (m - 1) hops of a chain between a node's devices, 2 ceil(lg m_l) hops
//              at other levels; 2 (m_l - 1)/m_l n bytes cross each level, all levels at the same
//              time
//   in switch  all-reduce: as the tree, but the innermost level's switch sums. (m + 1)/m n bytes
//              pass each way: each rank's data once, and the sums of its own part
// Ring and tree wait once for the buffers of their slowest level (ProtocolRates::start).
// A group that has several members in a node leaves the node through all of the node's interfaces.
// Networks lose bandwidth with the number of nodes that sum (LibraryRates::congestion).
#include "model/cost/op_cost.hpp"
#include "model/partition/program/group_shape.hpp"

namespace stratplan {

/// Whether the machine's library is described on every level where the group has several members.
bool has_library_rates(const GroupShape& shape, const MachineProfile& machine);
/// Requires has_library_rates(), and several members. `placement` as in estimate_collective().
Seconds estimate_by_library(Collective op, Bytes bytes, const GroupShape& shape,
                            const Topology& placement, const MachineProfile& machine);

}  // namespace stratplan
