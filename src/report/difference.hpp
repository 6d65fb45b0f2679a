#pragma once
// Two plans side by side: settings that differ, layers that differ, and the predicted time and
// memory of each plan.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "report/prediction.hpp"

namespace stratplan {

/// One plan on one machine. `memory` belongs to the rank that needs most, at the op where this rank
/// needs most. A layer's memory counts its persistent buffers and its buffers that are alive at the
/// op.
struct PlanSide {
  const PlanAndNetwork& planned;
  PlanPrediction prediction;
  std::vector<Bytes> memory;  ///< per layer of the network
};
PlanSide side_of(const PlanAndNetwork& planned, const MachineProfile& machine);

struct SettingDifference {
  std::string setting;
  std::string a, b;
};

/// A layer of one or both networks, or a run of consecutive layers with the same decompositions.
/// Seconds and memory are sums over the run.
struct LayerDifference {
  std::string first, last;
  int layers = 1;
  std::string a, b;  ///< decompositions; empty: that network has no such layer
  Seconds a_seconds{}, b_seconds{};
  Bytes a_memory{}, b_memory{};
  bool differs() const { return a != b; }
};

struct Difference {
  std::vector<SettingDifference> settings;
  /// one entry per layer, in the order of plan a; layers that only plan b has come last
  std::vector<LayerDifference> layers;
};

Difference compare_plans(const PlanSide& a, const PlanSide& b);
/// Returns the layers that differ. Neighbours with the same two decompositions become one run.
std::vector<LayerDifference> fold_neighbours(const std::vector<LayerDifference>& layers);

Table settings_table(const Difference& difference, const std::string& a, const std::string& b);
Table layers_table(const std::vector<LayerDifference>& layers, const std::string& a,
                   const std::string& b);
/// Step time and memory of both plans.
Table totals_table(const PlanSide& a, const PlanSide& b, const std::string& name_of_a,
                   const std::string& name_of_b);
Json to_json(const Difference& difference, const PlanSide& a, const PlanSide& b);

}  // namespace stratplan
