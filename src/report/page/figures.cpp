#include "report/page/figures.hpp"

#include <fmt/format.h>

#include "planner/prediction.hpp"

namespace stratplan {

ReportedPlan reported(std::string name, std::string file, PlanAndNetwork planned,
                      MachineProfile machine, std::optional<Timings> timings,
                      const std::string& timings_file) {
  ReportedPlan plan{std::move(name), std::move(file), std::move(planned), std::move(machine)};
  const LayerDecompositions& layers = plan.planned.plan.layers;
  plan.prediction = predict_plan(plan.planned.plan, plan.planned.network, plan.machine);
  // The prediction of the plan's file was made before the runs, with the machine's drift then.
  const Plan& of_file = plan.planned.plan;
  if (of_file.prediction && of_file.prediction->certainty &&
      of_file.machine_fingerprint == plan.machine.fingerprint()) {
    Sensitivity errors = std::move(plan.prediction.whole.errors);
    plan.prediction.whole = *of_file.prediction;
    plan.prediction.whole.errors = std::move(errors);
  }
  plan.predicted =
      times_by_kind(plan.prediction.programs, plan.prediction.steps, layers, &plan.machine);
  if (!timings) return plan;
  check_match(*timings, timings_file, plan.planned, plan.file);
  const Durations& medians = timings->timing.op_medians;
  if (!medians.empty()) {
    const std::vector<Program> all = programs_of(plan.planned.plan, plan.planned.network);
    plan.measured = times_by_kind(all, of_programs(medians, all, timings_file, "/ranks", "time"),
                                  layers, nullptr);
  }
  plan.timings = std::move(timings);
  return plan;
}

std::string simulated_ranks(std::span<const ReportedPlan> plans) {
  for (const ReportedPlan& plan : plans)
    if (plan.prediction.programs.size() < static_cast<std::size_t>(plan.planned.plan.ranks))
      return fmt::format("{} representative ranks, where predicted for more than {}",
                         plan.prediction.programs.size(), most_ranks_of_their_own);
  return "the ranks";
}

}  // namespace stratplan
