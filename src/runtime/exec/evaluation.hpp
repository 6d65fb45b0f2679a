#pragma once
// Evaluates the loss and the accuracy of a trained network on a data set. Only the forward phase
// runs, and no parameter is updated.
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct EvaluatedLoss {
  std::string name;  ///< of the loss layer
  double loss = 0;   ///< mean over the batches, without the loss's weight
  /// fraction of the labels whose channel has the greatest value; no value if the loss has no
  /// labels. There is one label per sample or per position
  std::optional<double> accuracy{};
};

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;  ///< weighted sum of the losses
  std::vector<EvaluatedLoss> losses{};
};

/// Evaluates the network on the first `batches` batches of the executor's data source. `program`
/// comes from lower_inference. The executor holds the trained parameters and running statistics.
/// Called by all ranks. All ranks return the same result, except that losses are NaN on ranks on
/// which no loss lies. Throws CommunicationError and the errors of the data source.
Evaluation evaluate(const Network& network, const Program& program, Executor& executor,
                    Communicator& communicator, std::int64_t batches);

}  // namespace stratplan
