#pragma once
// Whole tensors from their parts: what the ranks hold of parameters and gradients is brought to
// rank 0, each element from one owner.
#include <array>
#include <string>
#include <vector>

#include "runtime/device/tensor.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/exec/parameter_storage.hpp"

namespace stratplan {

/// On rank 0: every parameter tensor, or its gradient or a part of its optimizer's state (which the
/// optimizer must have), in the program's order, named "conv1.weights" and the like: weights as (F,
/// C, kD, kH, kW), others as (C). Empty on the other ranks. Called by all ranks. Throws
/// CommunicationError.
std::vector<NamedTensor> gather_parameters(const Network& network, const Program& program,
                                           Executor& executor, Communicator& communicator,
                                           ParameterPart part);

/// A rank's part of a tensor.
struct TensorBlock {
  Region region;
  Shape global;
  std::vector<float> values;  ///< channels last
};

/// On rank 0: the whole tensors, channels last, in the order given; empty on the other ranks.
/// Blocks of one tensor are equal or disjoint on any two ranks, and may be empty. Called by all
/// ranks with as many blocks. Throws CommunicationError.
std::vector<std::vector<float>> gather_blocks(std::vector<TensorBlock>& blocks,
                                              Communicator& communicator);

/// On rank 0: the running statistics of every batch normalization, whole, under PyTorch's names,
/// each of shape (C): "bn1.running_mean", "bn1.running_var". None of networks that keep none. Empty
/// on the other ranks. Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_running_statistics(const Network& network, const Program& program,
                                                   Executor& executor, Communicator& communicator);
/// Those names, in the order in which RunningStatistics::value holds them.
std::array<std::string, 2> running_names(const RunningStatistics& running, const Network& network);

/// What a dump holds and a verification compares: "loss", of shape (1), of the last iteration, then
/// the gradients. As gather_parameters.
std::vector<NamedTensor> gather_iteration(const Network& network, const Program& program,
                                          Executor& executor, Communicator& communicator);

}  // namespace stratplan
