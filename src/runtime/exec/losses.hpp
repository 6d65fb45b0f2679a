#pragma once
// The losses of a step, and their weighted sum, which training lowers.
#include <span>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// Returns the sum of the losses, each times its weight. `losses` are in the network's order.
double weighted_sum(const Program& program, std::span<const double> losses);

/// Returns the last iteration's losses, as Executor::losses() does. If losses lie on different
/// ranks, all ranks call this, and all get all losses. The numbers are valid until the next call.
std::span<const double> step_losses(Executor& executor, Communicator& communicator);

}  // namespace stratplan
