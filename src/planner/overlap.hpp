#pragma once
// The parts of a plan's execution that are chosen for the plan as a whole, once its decompositions
// are known: implementations of kernels, transports, and overlap of communication with kernels.
#include <optional>
#include <set>
#include <string>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// Returns the names of the convolutions for which the interior/boundary split costs less than one
/// kernel after the whole halo exchange. The cost of a split is that of its kernels and of the part
/// of the exchange that they do not hide. Costs are those of the rank that takes longest for the
/// layer. Requires concurrent streams in the plan.
std::set<std::string> interior_splits_that_pay(const Plan& plan, const Network& network,
                                               const MachineProfile& machine);

/// Sets the plan's execution, and returns the prediction of the result. Kernels get the fastest
/// known implementations, and transfers the fastest known transports. If kernels can hide
/// communication on this machine, streams and interior/boundary splits are chosen by the shortest
/// simulated step. No choice may make a plan exceed the memory limit. A plan over many ranks uses
/// concurrent streams if it then fits. Splits are tried for such a plan only if `thorough`.
Prediction choose_execution(Plan& plan, const Network& network, const MachineProfile& machine,
                            const std::optional<Bytes>& memory_limit = {}, bool thorough = true);

}  // namespace stratplan
