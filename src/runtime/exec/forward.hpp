#pragma once
// Runs the forward program for inference, and collects the network's outputs, which are the inputs
// of the loss.
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// The outputs of all samples, row-major in the order (samples, C, D, H, W).
struct Outputs {
  Shape shape;
  std::vector<float> values;
};

/// Returns the network's outputs for the first `batches` batches of the executor's data source.
/// Only rank 0 gets their values. `program` comes from lower_inference. The executor holds the
/// parameters and running statistics. Called by all ranks. Throws CommunicationError and the errors
/// of the data source.
Outputs forward(const Network& network, const Program& program, Executor& executor,
                Communicator& communicator, std::int64_t batches);

/// Replaces the scores by probabilities, with a softmax over the channels of each position.
void apply_softmax(Outputs& outputs);

}  // namespace stratplan
