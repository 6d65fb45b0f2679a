#pragma once
// Which file holds the samples of each input of a network, and the labels or targets of each loss.
#include <string>
#include <vector>

#include "model/network/network.hpp"
#include "runtime/io/data_set.hpp"

namespace stratplan {

/// Sets where the arrays of a network lie. Each of `given` is the path of a data set, or NAME=FILE,
/// where NAME is an input or a loss of the network. In a data set, the samples of the only input
/// are named x, and the labels or targets of the only loss y. Arrays of several inputs or losses
/// have the names of the layers. Throws UsageError if a name is unknown, if a layer or the data set
/// is given twice, or if an array has no place. With `request.samples_alone`, labels and targets
/// need none.
void set_places(DataSetRequest& request, const Network& network,
                const std::vector<std::string>& given);

}  // namespace stratplan
