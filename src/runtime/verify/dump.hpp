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

/// Returns, on rank 0, one part of every parameter: its value, its gradient, or a part of the
/// optimizer's state. The optimizer must have that part. The result is empty on other ranks.
/// Tensors are in the program's order, with names like "conv1.weights". Weights have the shape (F,
/// C, kD, kH, kW), other parameters (C). Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_parameters(const Network& network, const Program& program,
                                           Executor& executor, Communicator& communicator,
                                           ParameterPart part);

/// One rank's block of a tensor.
struct TensorBlock {
  Region region;
  Shape global;
  std::vector<float> values;  ///< channels last
};

/// Returns, on rank 0, the whole tensors, channels last, in the order of `blocks`. The result is
/// empty on other ranks. Any two ranks' blocks of a tensor must be equal or disjoint; blocks may be
/// empty. Called by all ranks with equally many blocks. Throws CommunicationError.
std::vector<std::vector<float>> gather_blocks(std::vector<TensorBlock>& blocks,
                                              Communicator& communicator);

/// Returns, on rank 0, the running statistics of every batch normalization as whole tensors of
/// shape (C). Names are PyTorch's: "bn1.running_mean", "bn1.running_var". The result is empty on
/// other ranks, and for networks without running statistics. Called by all ranks. Throws
/// CommunicationError.
std::vector<NamedTensor> gather_running_statistics(const Network& network, const Program& program,
                                                   Executor& executor, Communicator& communicator);

/// Returns, on rank 0, the tensors that a dump holds and a verification compares: "loss" of the
/// last iteration, with shape (1), then the gradients as gather_parameters returns them. The result
/// is empty on other ranks. Called by all ranks. Throws CommunicationError.
std::vector<NamedTensor> gather_iteration(const Network& network, const Program& program,
                                          Executor& executor, Communicator& communicator);

}  // namespace stratplan
