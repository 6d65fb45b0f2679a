#pragma once
// What autotune found, for people: the table of plans, predicted and measured, and the Markdown
// report.
#include <string>
#include <vector>

#include "report/comparison.hpp"
#include "report/table.hpp"
#include "tuner/autotune.hpp"

namespace stratplan {

/// One row per plan, the recommended one first: predicted, measured with its spread, error, and the
/// differences from the undivided run.
Table accuracy_table(const AutotuneResult& result);

/// What the table needs said about it: a changed pace of the machine, aliases, baselines that were
/// faster after all, disturbed or failed runs, failed verifications.
std::vector<std::string> remarks(const AutotuneResult& result);

/// A measured plan's comparison, step by step.
struct PlanComparison {
  const TunedPlan* plan = nullptr;
  Comparison comparison;
};
/// Of every measured plan, from its timings.json.
std::vector<PlanComparison> compare_plans(const AutotuneResult& result);

/// report.md
std::string accuracy_report(const AutotuneResult& result, const AutotuneRequest& request);

}  // namespace stratplan
