#pragma once
// What one step costs on a machine, and how well that is known.
#include <map>
#include <string>
#include <vector>

#include "model/cost/machine_profile.hpp"
#include "model/partition/program.hpp"

namespace stratplan {

/// measured at exactly this; interpolated between measurements of the same; estimated from rates.
enum class Tier : int { Measured, Interpolated, Estimated };

struct StepCost {
  Seconds seconds{};
  Tier tier = Tier::Estimated;
};

/// Time of a step alone, partners ready. Estimates are optimistic (a floor), so that planning on them never hides a plan worth measuring.
StepCost cost_of(const Step& step, const Program& program, const MachineProfile& machine);
StepCost cost_of(const Kernel& kernel, const MachineProfile& machine);

}  // namespace stratplan
