#pragma once
// A layer's kernels as one rank sees them, by its distributions alone: for lower(), and for whoever
// wants to know what a kernel costs without a program around it.
#include "model/network/network.hpp"
#include "model/partition/decomposition.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// The local description shared by a layer's forward and backward kernels: shapes of what the rank
/// reads and computes, windows with local padding, constants.
Kernel local_kernel(const Network& network, LayerIndex layer,
                    const LayerDistributions& distributions, int rank, KernelKind kind);

/// The sets of statistics that overlap a rank's samples, and which blocks of samples hold parts of
/// them.
struct StatisticsGroup {
  StatisticsSets sets;
  int first_block = 0, last_block = 0;  ///< along N
  bool alone = false;                   ///< one set per rank: nobody else has part of it
};
/// Blocks of samples that share a set form one group: where none straddle ranks that is the rank's
/// own block, so sets are kept apart and only the spatial parts are summed; otherwise one
/// zero-filled buffer has all their sets.
StatisticsGroup statistics_group(const Network& network, LayerIndex layer,
                                 const LayerDistributions& distributions, int rank);

/// The region of a flat tensor: axis C alone.
Region flat(std::int64_t elements);

/// Copies `region` of a tensor to a place of the same shape in another.
Kernel copy_kernel(const Region& source, const Region& from, const Region& destination,
                   const Region& to, DataType type, bool accumulate = false);

}  // namespace stratplan
