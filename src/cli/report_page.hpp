#pragma once
// The page of plans and their measurements.
#include <vector>

#include "cli/commands.hpp"
#include "cli/plan_files.hpp"
#include "report/page/page.hpp"

namespace stratplan {

/// Predicts the plans, and returns what the page shows. The first plan is the one to use. Of
/// several measurements of a plan, the last counts.
PageContents page_of(std::vector<PlanFile> files, const CommandLine& command_line);

}  // namespace stratplan
