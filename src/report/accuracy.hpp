#pragma once
// The results of autotune for people: the table of plans with predicted and measured times, and the
// Markdown report.
#include <string>
#include <vector>

#include "report/comparison.hpp"
#include "report/table.hpp"
#include "tuner/autotune.hpp"

namespace stratplan {

/// One row per plan, the recommended one first: predicted time, measured time with its spread, the
/// error of the prediction, and the differences from the undivided run.
Table accuracy_table(const AutotuneResult& result);

/// Returns sentences to print below the table: drift of the machine, aliases, baselines that were
/// faster than the recommended plan, disturbed runs, failed verifications.
std::vector<std::string> remarks(const AutotuneResult& result);

/// A measured plan, compared with its prediction op by op.
struct PlanComparison {
  const TunedPlan* plan = nullptr;
  Comparison comparison;
};
/// Compares the prediction of each measured plan with its timings.json.
std::vector<PlanComparison> compare_plans(const AutotuneResult& result);

/// Returns the text of report.md.
std::string accuracy_report(const AutotuneResult& result, const AutotuneRequest& request);

}  // namespace stratplan
