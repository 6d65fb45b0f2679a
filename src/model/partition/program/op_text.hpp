#pragma once
// The text of an op for messages: "conv_forward of conv1 (forward)", "exchange with ranks 0, 2 for
// relu1 (backward)".
#include <string>

#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// `rank`: the rank that runs the op. The text names only the other ranks.
std::string to_text(const Op& op, const Network& network, int rank);

}  // namespace stratplan
