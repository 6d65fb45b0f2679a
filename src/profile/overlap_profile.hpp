#pragma once
// Measures how much of the time of a gradient sum can be hidden behind kernels. Cores that share
// memory move the data themselves, so nothing is hidden. A slow network needs a processor only now
// and then, so most of the transfer time can be hidden.
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Returns MachineProfile::hidden, in [0, 1]. The executor runs an all-reduce over all ranks, as
/// large as a bucket of gradients, and kernels that take about as long. It runs them one after the
/// other, then at once. The result is the time saved, as a share of the time of the all-reduce or
/// of the kernels, whichever is shorter. For one rank the result is 0.
double measure_hidden(Backend& backend, const Team& team);

}  // namespace stratplan
