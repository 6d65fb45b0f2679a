#pragma once
// What of a plan's execution is chosen for the plan as a whole, once its decompositions are known:
// implementations of kernels, and what goes on beside them.
#include <optional>
#include <set>
#include <string>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// Convolutions for which the kernels of the slabs, and what of the exchange remains beside them,
/// cost less than one kernel behind the whole exchange: on the rank that takes longest for it, by
/// price. The plan's streams are concurrent.
std::set<std::string> interior_splits_that_pay(const Plan& plan, const Network& network,
                                               const MachineProfile& machine);

/// Writes into the plan's execution the fastest implementations known; and, if kernels are known to
/// hide any communication on this machine, whether it goes on beside them, with which layers in
/// slabs: whatever makes the shortest step, played through, within the memory limit if what is done
/// in turn is. Over many ranks it always goes on beside them, and slabs are tried if `thorough`.
Prediction choose_execution(Plan& plan, const Network& network, const MachineProfile& machine,
                            const std::optional<Bytes>& memory_limit = {}, bool thorough = true);

}  // namespace stratplan
