#pragma once
// What a trained network is worth: its loss, and how often it is right, over a data set. Inference
// alone, nothing is updated.
#include <optional>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  ///< mean over the batches
  /// of losses with labels: the share of samples, or of their positions, whose label's channel is
  /// the greatest
  std::optional<double> accuracy;
};

/// Runs the data source's first `batches` steps. `program`: of lower_inference; the executor has
/// its parameters and running statistics. Called by all ranks, which find the same. Throws
/// CommunicationError, and what the data source throws.
Evaluation evaluate(const Network& network, const Program& program, Executor& executor,
                    Communicator& communicator, std::int64_t batches);

}  // namespace stratplan
