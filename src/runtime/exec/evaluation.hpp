#pragma once
// Evaluates the loss and the accuracy of a trained network on a data set. Only the forward phase
// runs, and no parameter is updated.
#include <optional>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  ///< mean over the batches
  /// fraction of the labels whose channel has the greatest value; no value if no loss has labels.
  /// There is one label per sample or per position
  std::optional<double> accuracy;
};

/// Evaluates the network on the first `batches` batches of the executor's data source. `program`
/// comes from lower_inference. The executor holds the trained parameters and running statistics.
/// Called by all ranks. All ranks return the same result, except that the loss is NaN on ranks
/// without the loss layer. Throws CommunicationError and the errors of the data source.
Evaluation evaluate(const Network& network, const Program& program, Executor& executor,
                    Communicator& communicator, std::int64_t batches);

}  // namespace stratplan
