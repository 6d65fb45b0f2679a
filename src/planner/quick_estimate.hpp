#pragma once
// A plan in closed form, before it is worth lowering.
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

struct Outline {
  Bytes memory{};  ///< what adds up of it: persistent, and saved for the backward phase
  Seconds
      step{};  ///< kernels and redistributions one after the other, without the reduction of gradients
};
Outline outline_of(const Plan& plan, const Network& network, const MachineProfile& machine);

}  // namespace stratplan
