#pragma once
// A plan in closed form, before it is worth lowering.
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct QuickEstimate {
  Bytes memory{};  ///< what adds up of it: persistent, and saved for the backward phase
  /// kernels and redistributions one after the other, without the reduction of gradients
  Seconds step{};
};
QuickEstimate quick_estimate_of(const Plan& plan, const Network& network,
                                const MachineProfile& machine);

}  // namespace stratplan
