#pragma once
// What a network makes of given samples: the forward program, and what its loss has read.
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// Whole tensors, sample after sample, (samples, C, D, H, W), row-major.
struct Outputs {
  Shape shape;
  std::vector<float> values;
};

/// The network's outputs in the data source's first `batches` steps, on rank 0; nothing elsewhere.
/// `program`: of lower_inference; the executor has its parameters and running statistics. Called by
/// all ranks. Throws CommunicationError, and what the data source throws.
Outputs forward(const Network& network, const Program& program, Executor& executor,
                Communicator& communicator, std::int64_t batches);

/// A softmax over the channels of each position: of scores their probabilities.
void apply_softmax(Outputs& outputs);

}  // namespace stratplan
