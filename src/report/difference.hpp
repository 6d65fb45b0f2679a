#pragma once
// Two plans side by side: settings that differ, layers that differ, and what each is predicted to
// take.
#include <string>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "report/prediction.hpp"

namespace stratplan {

/// Of one plan on one machine. Memory per layer: what of the worst rank's buffers is the layer's
/// and persists, or lives at the program's fullest step.
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

/// A layer that both networks have, or a run of them that differ in the same way; or one that only
/// one of them has.
struct LayerDifference {
  std::string first, last;
  int layers = 1;
  std::string a, b;  ///< decompositions; empty: no such layer
  Seconds a_seconds{}, b_seconds{};
  Bytes a_memory{}, b_memory{};
  bool differs() const { return a != b; }
};

struct Difference {
  std::vector<SettingDifference> settings;
  std::vector<LayerDifference> layers;  ///< all of them, one by one, in the order of the first plan
};

Difference compare_plans(const PlanSide& a, const PlanSide& b);
/// Those that differ, neighbours that differ in the same way together.
std::vector<LayerDifference> fold_neighbours(const std::vector<LayerDifference>& layers);

Table settings_table(const Difference& difference, const std::string& a, const std::string& b);
Table layers_table(const std::vector<LayerDifference>& layers, const std::string& a,
                   const std::string& b);
/// Step time and memory of both.
Table totals_table(const PlanSide& a, const PlanSide& b, const std::string& name_of_a,
                   const std::string& name_of_b);
Json to_json(const Difference& difference, const PlanSide& a, const PlanSide& b);

}  // namespace stratplan
