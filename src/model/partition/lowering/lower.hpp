#pragma once
// The one place where a plan becomes ops.
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/layers/fusion.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// The whole iteration of one of the job's ranks: forward, backward, update, with its buffer plan
/// and the ways of its transfers. `ranks`: of the job, at least up to the last on which a layer
/// lies, which is the default. A rank on which none lies has nothing to do.
Program lower(const Network& network, const LayerDecompositions& decompositions,
              const Execution& execution, int rank, int ranks = 0);

/// The forward phase alone, with what training left behind: batch normalization by its running
/// statistics, no dropout. Parameters and running statistics are those of lower(), without
/// gradients and velocities. Requires that the network keeps running statistics if it has any batch
/// normalization.
Program lower_inference(const Network& network, const LayerDecompositions& decompositions,
                        const Execution& execution, int rank, int ranks = 0);

/// The ops of layers that are fused, alone: kernels in both directions, sums over ranks, gradient
/// reduction, update, their needed inputs given. Each but the head has the decomposition that it
/// inherits. Buffers are not placed. Not in slabs, which a layer has only behind an edge.
Program lower_fusion(const Network& network, const Fusion& fusion, const Decomposition& of_head,
                     const Execution& execution, int rank);

/// The ops of one edge alone in both directions (packing, messages, unpacking): what a pair of
/// candidates costs. Empty if the tensor already lies where it is needed. Buffers are not placed.
Program lower_edge(const Network& network, LayerIndex producer, const Decomposition& from,
                   LayerIndex consumer, std::size_t input, const Decomposition& to,
                   const Execution& execution, int rank);

}  // namespace stratplan
