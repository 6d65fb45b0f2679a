#pragma once
// The closed-form estimate of a plan, made before the plan is lowered.
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct QuickEstimate {
  Bytes memory{};  ///< persistent memory, and memory saved for the backward phase
  /// time of kernels and redistributions one after the other, without gradient sums
  Seconds step{};
};
QuickEstimate quick_estimate_of(const Plan& plan, const Network& network,
                                const MachineProfile& machine);

}  // namespace stratplan
