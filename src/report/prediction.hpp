#pragma once
// The prediction of one plan: times by layer, and memory by class of tensors.
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/cost/memory.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "planner/prediction.hpp"
#include "report/layers.hpp"

namespace stratplan {

struct PlanPrediction {
  std::vector<Program> programs;   ///< one per simulated rank
  Timeline timeline;               ///< the simulated step
  Durations steps;                 ///< simulated durations per rank and op
  std::vector<LayerTimes> layers;  ///< per layer of the network
  /// per layer of the network: in seconds, of the layer's time; without what it waits for others
  std::vector<Range> layer_ranges;
  Prediction whole;  ///< the step and the memory, with their ranges
  MemoryUse memory;  ///< of the rank that needs most
  Bytes limit{};     ///< memory of a rank's device; 0: unknown
  Bytes reserve{};   ///< the part of the limit on which no plan should count
  KernelCount kernels;
  std::vector<KernelCount> layer_kernels;  ///< per layer of the network

  Fit fit() const { return fit_of(memory.total(), limit, reserve); }
};

/// Lowers the plan and simulates one step. Above 16 ranks, only representative ranks are simulated
/// (planner/prediction.hpp), unless `every_rank` is set.
PlanPrediction predict_plan(const Plan& plan, const Network& network, const MachineProfile& machine,
                            bool every_rank = false);

/// Returns "23 estimated", "23 measured" or "12 measured, 11 estimated"; "-" without kernels.
std::string kernels_text(const KernelCount& kernels);
Json memory_to_json(const MemoryUse& memory);
/// One row per class of tensors, then rows for gaps, scratch memory, data and the reserve.
Table memory_table(const MemoryUse& memory, Bytes reserve);

}  // namespace stratplan
