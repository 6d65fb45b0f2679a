#pragma once
// What a collective costs: from measured tables where there are any, else by the standard algorithms' formulas.
//
// Formulas with latency a per message, b seconds per byte between two ranks, c seconds per byte summed, p ranks and n bytes:
//   all-reduce      recursive doubling   ceil(lg p) (a + n b + n c)
//                   Rabenseifner         2 ceil(lg p) a + 2 (p-1)/p n b + (p-1)/p n c
//                   ring                 2 (p-1) a + 2 (p-1)/p n b + (p-1)/p n c
//   reduce-scatter  recursive halving    ceil(lg p) a + (p-1)/p n (b + c)
//                   pairwise exchange    (p-1) a + (p-1)/p n (b + c)
//   all-gather      Bruck                ceil(lg p) a + (p-1)/p n b
//                   ring                 (p-1) a + (p-1)/p n b
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005, sections 4.1,
// 4.4 and 4.5. For p that are no powers of two the paper adds terms to recursive doubling and halving; they are left out here, as these are floors.
#include <string>

#include "model/cost/step_cost.hpp"

namespace stratplan {

/// "all_reduce f32 2": the key in MachineProfile::collectives.
std::string collective_key(Collective op, DataType type, int group_size);

/// The cheapest algorithm's time for `bytes` (as CollectiveStep::bytes) over `members` ranks that meet at `level`.
Seconds estimate_collective(Collective op, Bytes bytes, int members, const Level& level, const DeviceRates& device);

/// `ranks`: of the job, which decides the level at which the group meets.
StepCost collective_cost(const CollectiveStep& step, int ranks, const MachineProfile& machine);

}  // namespace stratplan
