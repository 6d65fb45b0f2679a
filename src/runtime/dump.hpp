#pragma once
// Whole tensors from their parts: what the ranks hold of parameters and gradients is brought to rank 0, each element from one owner.
#include <vector>

#include "runtime/executor.hpp"
#include "runtime/tensor.hpp"

namespace stratplan {

enum class ParameterPart : int { Value, Gradient };

/// On rank 0: every parameter tensor, or its gradient, in the program's order, named "conv1.weights" and the like: weights as (F, C, kD, kH, kW),
/// others as (C). Empty on the other ranks. Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_parameters(const Network& network, const Program& program, Executor& executor, Communicator& communicator,
                                           ParameterPart part);

/// What a dump holds and a verification compares: "loss", of shape (1), of the last iteration, then the gradients. As gather_parameters.
std::vector<NamedTensor> gather_iteration(const Network& network, const Program& program, Executor& executor, Communicator& communicator);

}  // namespace stratplan
