#pragma once
// The figures of a plan's report. Each is one picture, and the same numbers as CSV.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timings.hpp"
#include "report/page/time_kinds.hpp"
#include "report/prediction.hpp"

namespace stratplan {

/// A plan as predicted and, if it ran, as measured.
struct ReportedPlan {
  std::string name;  ///< unique in the report
  std::string file;
  PlanAndNetwork planned;
  MachineProfile machine;
  PlanPrediction prediction{};
  std::vector<KindTimes> predicted{};
  std::optional<Timings> timings{};
  /// by layer, as `predicted`; empty if single ops were not measured
  std::vector<KindTimes> measured{};
};
/// Predicts the plan on its machine. Throws InputError that names `timings_file` if the timings are
/// not of this plan.
ReportedPlan reported(std::string name, std::string file, PlanAndNetwork planned,
                      MachineProfile machine, std::optional<Timings> timings,
                      const std::string& timings_file);

/// Whose ops the predicted times of these plans are of: "the ranks", or "4 representative ranks,
/// where predicted for more than 16".
std::string simulated_ranks(std::span<const ReportedPlan> plans);

struct Figure {
  std::string name;  ///< of its files: letters, digits and hyphens
  std::string title;
  std::string caption;  ///< what is drawn, and how to read it
  std::string svg;
  std::string csv;  ///< the columns' names hold the units
};

/// The plans' steps: predicted, with ranges, beside measured.
Figure step_figure(const std::vector<ReportedPlan>& plans);
/// Where the time of the plans' steps goes, by kind.
Figure kind_figure(const std::vector<ReportedPlan>& plans);
/// The network as a graph of blocks: each block's decomposition, and its time by kind.
Figure network_figure(const ReportedPlan& plan);
/// The memory of the rank that needs most over a step, by what holds it.
Figure memory_figure(const ReportedPlan& plan);
/// How the input of some layers lies on the ranks, and what one of the ranks reads of it: one layer
/// for each two decompositions that meet at an edge, the heaviest first.
std::vector<Figure> tensor_figures(const ReportedPlan& plan);
/// Who sends how much to whom in one step. Nothing if ranks send no messages.
std::optional<Figure> traffic_figure(const ReportedPlan& plan);

}  // namespace stratplan
