#pragma once
// The prediction of one plan, layer by layer and with its memory itemized.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/cost/memory.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "report/layers.hpp"

namespace stratplan {

struct PlanPrediction {
  std::vector<Program> programs;   ///< per rank
  Durations steps;                 ///< per rank and step
  std::vector<LayerTimes> layers;  ///< per layer of the network
  Seconds step{};
  MemoryUse memory;            ///< of the worst rank
  std::size_t unmeasured = 0;  ///< distinct kernels whose time is not measured exactly
};

/// Lowers the plan and simulates one step; of many ranks those that stand for all
/// (planner/prediction.hpp), unless every rank is asked for.
PlanPrediction predict_plan(const Plan& plan, const Network& network, const MachineProfile& machine,
                            bool every_rank = false);

Json memory_to_json(const MemoryUse& memory);
/// One row per class of tensors.
Table memory_table(const MemoryUse& memory);

}  // namespace stratplan
