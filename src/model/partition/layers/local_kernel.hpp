#pragma once
// A layer's kernels on one rank. They follow from the layer's distributions alone, so costs can be
// computed without a program.
#include "model/network/network.hpp"
#include "model/partition/decomposition.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// Returns the layer's kernel of one kind on one rank. The kernel has local shapes (of the regions
/// that the rank reads and computes), windows with local padding, and the layer's constants.
/// Forward and backward kernels have the same shapes.
Kernel local_kernel(const Network& network, LayerIndex layer,
                    const LayerDistributions& distributions, int rank, KernelKind kind);

/// The statistics sets that a rank sums up, and the blocks of samples that hold parts of these
/// sets.
struct StatisticsGroup {
  StatisticsSets sets;
  int first_block = 0, last_block = 0;  ///< the group's first and last block along N
  bool alone = false;                   ///< each rank has one set, which no other rank shares
};
/// Returns a rank's group. Blocks of samples that share a set form one group. If no set straddles
/// blocks, the group is the rank's own block, and sums run only over ranks with other spatial parts
/// of this block. Otherwise each rank's buffer of sums holds all sets of the group's blocks, with
/// zeros for sets without local samples.
StatisticsGroup statistics_group(const Network& network, LayerIndex layer,
                                 const LayerDistributions& distributions, int rank);

/// Returns the region of a flat tensor. A flat tensor has all of its elements along axis C.
Region flat(std::int64_t elements);

/// Returns a kernel over a flat tensor.
Kernel flat_kernel(KernelKind kind, std::int64_t elements);
/// Returns the kernel that fills a flat tensor with zeros.
Kernel fill_kernel(std::int64_t elements, DataType type);

/// Returns the kernel that copies region `from` of one tensor to region `to` of another. If
/// `accumulate`, the kernel adds instead of copying. `source` and `destination`: the regions that
/// the two buffers hold. `from` and `to` must have the same shape.
Kernel copy_kernel(const Region& source, const Region& from, const Region& destination,
                   const Region& to, DataType type, bool accumulate = false);

}  // namespace stratplan
