#pragma once
// Runs the forward program for inference, and collects the network's outputs, which are the inputs
// of the losses.
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// The outputs of all samples that one loss reads, row-major in the order (samples, C, D, H, W).
struct Outputs {
  std::string loss;  ///< name of the layer
  Shape shape;
  std::vector<float> values;
};

/// Returns the network's outputs for the first `batches` batches of the executor's data source, one
/// for each loss, in the network's order. Only rank 0 gets their values. `program` comes from
/// lower_inference. The executor holds the parameters and running statistics. Called by all ranks.
/// Throws CommunicationError and the errors of the data source.
std::vector<Outputs> forward(const Network& network, const Program& program, Executor& executor,
                             Communicator& communicator, std::int64_t batches);

/// Replaces the scores by probabilities, with a softmax over the channels of each position.
void apply_softmax(Outputs& outputs);

}  // namespace stratplan
