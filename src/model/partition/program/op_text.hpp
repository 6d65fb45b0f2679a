#pragma once
// An op in words, for messages: "conv_forward of conv1", "backward exchange with ranks 0, 2 for
// relu1".
#include <string>

#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// `rank`: whose op it is; peers are the others.
std::string to_text(const Op& op, const Network& network, int rank);

}  // namespace stratplan
