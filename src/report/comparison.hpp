#pragma once
// Predicted against measured times of one plan: in total, by kind of op, and by layer with the
// largest errors first.
#include <vector>

#include "model/cost/kind_differences.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timings.hpp"
#include "report/layers.hpp"

namespace stratplan {

/// Times of ops, by layer of the network, and times of the whole iteration, which include waiting
/// for the slowest rank.
struct Comparison {
  std::vector<LayerTimes> predicted;
  std::vector<Range> ranges;  ///< of `predicted`, in seconds (PlanPrediction::layer_ranges)
  std::vector<LayerTimes> measured;
  Prediction whole;  ///< the predicted iteration
  Seconds measured_step{};
  /// Timing::launched. If it is not 0, measured_step is the time of replayed iterations, and
  /// `measured` holds times of ops that were launched one by one.
  int launched = 0;
  KindDifferences kinds{};
};

/// Predicts the plan, and returns prediction and measurement together. `cache`: see
/// kind_differences(). Throws InputError naming `file` if the timings have no times of ops, or are
/// not of this plan's programs.
Comparison compare(const PlanAndNetwork& planned, const Timings& timings,
                   const MachineProfile& machine, const std::string& file, Bytes cache = {});

/// Returns predicted / measured - 1, so +0.1 means that the predicted time is 10 % too long.
double relative_error(Seconds predicted, Seconds measured);

/// The rows are compute, exchange, collective, the sum of all ops, and the whole iteration.
Table kind_table(const Comparison& comparison);
/// The layers whose prediction is farthest off in milliseconds, at most `most` of them.
Table worst_layers(const Network& network, const Comparison& comparison, std::size_t most);
/// Every layer, in the network's order.
Table layer_comparison(const Network& network, const Comparison& comparison);

/// One row per kind, in their order.
Table kind_difference_table(const KindDifferences& differences);
Json to_json(const KindDifferences& differences);

}  // namespace stratplan
