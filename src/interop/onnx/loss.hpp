#pragma once
// The loss behind an imported model, because ONNX models have none.
#include <string>

#include "interop/onnx/operators/operation.hpp"

namespace stratplan::interop {

struct ChosenLoss {
  ImportedLoss loss;
  std::string reason;
};

/// Whether the layer gives scores of classes if its input does: it scales and shifts them by
/// constants, or enlarges or cuts a map of them. An enlarged image with the channels of the model's
/// input is no map of scores.
bool keeps_scores(const Draft& layer, const Draft& input_of_model);

/// Returns the loss that the user asked for, or the one that fits the last layer that does more
/// than keep scores. `joined`: the node at the model's end that became part of the loss; empty if
/// there is none.
ChosenLoss chosen_loss(const std::optional<ImportedLoss>& asked, const Draft& last,
                       const std::string& joined);

/// Whether the node is a softmax or a sigmoid whose output is that of the model, and becomes part
/// of the cross-entropy. No other node or loss reads such an output.
bool joins_loss(const Operation& op, const LossOfOutput& loss);

}  // namespace stratplan::interop
