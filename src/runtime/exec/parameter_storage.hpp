#pragma once
// Where a rank's parameters lie, and what goes with them: its whole blocks, or with sharding its
// shares of those, which the ranks that hold the same blocks have between them
// (model/partition/sharding.hpp).
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

enum class ParameterPart : int { Value, Gradient, Velocity, MeanSquare };

/// -1 if the optimizer has no such part.
BufferId buffer_of(const ParameterSlice& slice, ParameterPart part);

/// The elements of a rank's block, in the order of memory, that its buffer holds.
Interval held(const Program& program, const ParameterSlice& slice, ParameterPart part);

/// The whole block. Called by all ranks that share it.
std::vector<float> download_block(const Program& program, const ParameterSlice& slice,
                                  ParameterPart part, Executor& executor,
                                  Communicator& communicator);

/// Of a whole block what this rank holds.
void upload_block(const Program& program, const ParameterSlice& slice, ParameterPart part,
                  const std::vector<float>& block, Executor& executor);

}  // namespace stratplan
