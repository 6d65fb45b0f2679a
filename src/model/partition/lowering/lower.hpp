#pragma once
// Lowering: a plan becomes the programs of its ranks. Only this folder makes the ops of programs.
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/layers/fusion.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// Returns the program of one of the job's ranks for one training step: forward, backward and
/// update, with placed buffers and chosen transports. `ranks`: the number of ranks in the job. By
/// default, or if `ranks` is too small, the job ends with the last rank on which a layer lies. A
/// rank on which no layer lies has no ops.
Program lower(const Network& network, const LayerDecompositions& decompositions,
              const Execution& execution, int rank, int ranks = 0);

/// Returns the program of the forward phase alone, as inference needs it: batch normalization uses
/// its running statistics, and dropout does nothing. The program has the same parameters and
/// running statistics as the program of lower(), but no gradients and no optimizer state. Requires
/// that the network keeps running statistics if it has any batch normalization.
Program lower_inference(const Network& network, const LayerDecompositions& decompositions,
                        const Execution& execution, int rank, int ranks = 0);

/// Returns the ops of fused layers alone: kernels in both directions, sums over ranks, gradient
/// reduction and update. Data of input layers are loaded. Other inputs from outside the fusion have
/// buffers that no op writes. Each layer but the head has the decomposition that it inherits.
/// Buffers are not placed. There is no interior/boundary split, since only an edge brings a halo.
Program lower_fusion(const Network& network, const Fusion& fusion, const Decomposition& of_head,
                     const Execution& execution, int rank);

/// Returns the ops of one edge alone (packing, messages, unpacking), in both directions. The
/// planner takes their cost as the cost of the pair of candidates `from` and `to`. There are no ops
/// if the tensor already lies where it is needed. Buffers are not placed.
Program lower_edge(const Network& network, LayerIndex producer, const Decomposition& from,
                   LayerIndex consumer, std::size_t input, const Decomposition& to,
                   const Execution& execution, int rank);

}  // namespace stratplan
