#pragma once
// Gathers whole tensors on rank 0 from the blocks of all ranks. If several ranks hold the same
// block, one of them sends it.
#include <array>
#include <string>
#include <vector>

#include "runtime/device/tensor.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/exec/parameter_storage.hpp"

namespace stratplan {

/// Returns one part of every parameter on rank 0: value, gradient, or a part of the optimizer's
/// state that the optimizer must have. Empty on other ranks. Tensors are in the program's order,
/// with names like "conv1.weights" and shapes (F, C, kD, kH, kW) for weights, (C) for others.
/// Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_parameters(const Network& network, const Program& program,
                                           Executor& executor, Communicator& communicator,
                                           ParameterPart part);

/// One rank's block of a tensor.
struct TensorBlock {
  Region region;
  Shape global;
  std::vector<float> values;  ///< channels last
};

/// Returns the whole tensors on rank 0, channels last, in the order of `blocks`; empty on other
/// ranks. Any two ranks' blocks of a tensor must be equal or disjoint; blocks may be empty. Called
/// by all ranks with equally many blocks. Throws CommunicationError.
std::vector<std::vector<float>> gather_blocks(std::vector<TensorBlock>& blocks,
                                              Communicator& communicator);

/// Returns the running statistics of every batch normalization on rank 0, whole, each of shape (C).
/// Names are PyTorch's: "bn1.running_mean", "bn1.running_var". Empty on other ranks, and for
/// networks that keep none. Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_running_statistics(const Network& network, const Program& program,
                                                   Executor& executor, Communicator& communicator);
/// The names of running mean and variance, in the order of RunningStatistics::value.
std::array<std::string, 2> running_names(const RunningStatistics& running, const Network& network);

/// Returns the tensors that a dump holds and a verification compares: "loss" of the last iteration,
/// with shape (1), then the gradients. Called and returned as by gather_parameters.
std::vector<NamedTensor> gather_iteration(const Network& network, const Program& program,
                                          Executor& executor, Communicator& communicator);

}  // namespace stratplan
