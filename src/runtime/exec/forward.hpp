#pragma once
// Inference: runs the forward program and collects the network's outputs, which are the inputs of
// the loss.
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// The outputs of all samples: (samples, C, D, H, W), row-major.
struct Outputs {
  Shape shape;
  std::vector<float> values;
};

/// Returns the network's outputs for the first `batches` batches of the executor's data source.
/// Only rank 0 gets their values. `program` comes from lower_inference; the executor holds the
/// parameters and running statistics. Called by all ranks. Throws CommunicationError and the errors
/// of the data source.
Outputs forward(const Network& network, const Program& program, Executor& executor,
                Communicator& communicator, std::int64_t batches);

/// Replaces the scores by probabilities: a softmax over the channels of each position.
void apply_softmax(Outputs& outputs);

}  // namespace stratplan
