#pragma once
// The option --loss: a loss that an import adds to a model.
#include <string>

#include "model/network/onnx.hpp"

namespace stratplan {

/// Returns the loss that the option's value names. The value is a word and the settings that differ
/// from the usual ones, perhaps with an output before it: "aux=huber:delta=0.5,weight=0.4". Throws
/// UsageError.
LossOfOutput parse_loss(const std::string& text);

/// Describes the option's values for --help.
std::string loss_help();

}  // namespace stratplan
