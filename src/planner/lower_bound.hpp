#pragma once
// A lower bound on the memory of plans, without any search: it refuses impossible limits at once.
#include "model/partition/execution.hpp"
#include "planner/planner.hpp"

namespace stratplan {

/// The memory that every plan on at most `ranks` ranks needs on some rank: an even share of the
/// parameters, of their gradients and of the optimizer's state, and of the largest output of a
/// convolution or a fully connected layer, for one sample if the planner may choose micro-batches.
/// Most plans need far more.
Bytes least_conceivable_memory(const Network& network, std::int64_t ranks,
                               const Execution& execution, const FreeMemoryOptions& free);

}  // namespace stratplan
