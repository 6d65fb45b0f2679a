#pragma once
// How sure a predicted step is: the errors of the costs on its critical path. What ranks of one
// machine share does not average out, because only the path counts.
#include "model/base/certainty.hpp"
#include "model/cost/simulator.hpp"
#include "model/machine/error_model.hpp"

namespace stratplan {

/// The errors of the sum of these parts, by source. An expected wait has none.
///   kernel      measured: drift, and its own spread from run to run; under a software other than
///               stratplan also the device's. Estimated: device, family, and its own
///   transfer    measured: drift, its own spread, and what interpolation adds. Estimated: the link,
///               which is the outermost level between its ranks, and its own by kind and size
Sensitivity sensitivity_of(const CriticalPath& parts, const MachineProfile& machine,
                           const ErrorModel& errors = error_model());

/// The least sure tier on which at least 5 % of the sum of the parts rests.
Tier tier_of(const CriticalPath& parts, const MachineProfile& machine);

/// The part that an op alone is, at its own cost.
PathPart part_of(const Op& op, const Program& program, const MachineProfile& machine);

}  // namespace stratplan
