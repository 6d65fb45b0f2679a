#pragma once
// Predicted against measured of one plan: in total, per kind of step, and per layer with the worst
// offenders first.
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timings.hpp"
#include "report/layers.hpp"

namespace stratplan {

/// Both sides per layer of the network. The sums are of steps; the totals are of the whole
/// iteration, waiting for the slowest rank included.
struct Comparison {
  std::vector<LayerTimes> predicted;
  std::vector<LayerTimes> measured;
  Seconds predicted_step{};
  Seconds measured_step{};
  /// Timing::launched: then measured_step is of steps that were replayed, and `measured` is not
  int launched = 0;
};

/// Predicts the plan and lays what was measured beside it. Throws InputError naming `file` if the
/// timings are not of this plan's programs.
Comparison compare(const PlanAndNetwork& planned, const Timings& timings,
                   const MachineProfile& machine, const std::string& file);

/// predicted / measured - 1: +10 % means that the prediction was too long.
double relative_error(Seconds predicted, Seconds measured);

/// Rows: compute, exchange, collective, the sum of all steps, and the whole iteration.
Table kind_table(const Comparison& comparison);
/// The layers whose prediction is farthest off in milliseconds, at most `most` of them.
Table worst_layers(const Network& network, const Comparison& comparison, std::size_t most);
/// Every layer, in the network's order.
Table layer_comparison(const Network& network, const Comparison& comparison);

}  // namespace stratplan
