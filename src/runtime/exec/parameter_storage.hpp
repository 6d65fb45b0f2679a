#pragma once
// Access to a rank's blocks of parameters, gradients and optimizer state. With sharding, a rank's
// buffer holds only a share of the rank's block. The other ranks with the same block hold the other
// shares (model/partition/sharding.hpp).
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

enum class ParameterPart : int { Value, Gradient, Velocity, MeanSquare };

/// Returns the buffer of one part of a parameter; -1 if the optimizer has no such part.
BufferId buffer_of(const ParameterSlice& slice, ParameterPart part);

/// Returns the interval of elements that this rank's buffer holds. Elements are counted within this
/// rank's block, in memory order.
Interval held(const Program& program, const ParameterSlice& slice, ParameterPart part);

/// Returns this rank's whole block. Called by all ranks that share the block.
std::vector<float> download_block(const Program& program, const ParameterSlice& slice,
                                  ParameterPart part, Executor& executor,
                                  Communicator& communicator);

/// Copies this rank's share of a whole block into its buffer.
void upload_block(const Program& program, const ParameterSlice& slice, ParameterPart part,
                  const std::vector<float>& block, Executor& executor);

}  // namespace stratplan
