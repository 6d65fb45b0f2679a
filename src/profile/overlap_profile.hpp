#pragma once
// How much of a sum of gradients kernels can hide. Between cores that share memory the processors
// move the data themselves, and nothing is gained; a slow network works alone for most of the time,
// if somebody looks after it now and then.
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// MachineProfile::hidden: the executor runs a sum over all ranks, as large as a bucket of
/// gradients, and kernels that take about as long, one after the other and at once. What is saved,
/// as a share of the shorter of the two; in [0, 1].
double measure_hidden(Backend& backend, const Team& team);

}  // namespace stratplan
