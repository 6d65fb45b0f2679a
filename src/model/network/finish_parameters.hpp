#pragma once
// The last part of finish_network(): the layers that read each declared parameter, and the layers
// whose gradients training needs.
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace stratplan {

/// Sets the users of declared parameters and of running statistics, and Network::passes_gradient.
/// `pointers`: by layer, the JSON pointer that messages name. Throws InputError if layers disagree
/// about a shared parameter, or if a constant has a wrong number of values.
void finish_parameters(Network& network, const std::string& file,
                       const std::vector<std::string>& pointers);

}  // namespace stratplan
