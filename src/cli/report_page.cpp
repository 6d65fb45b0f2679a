#include "cli/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/console.hpp"
#include "cli/provenance.hpp"

namespace stratplan {
namespace {

/// The page's plans: the one to use first, then those that were measured, then the others; each
/// kind with the fastest first.
std::vector<ReportedPlan> reported_plans(std::vector<PlanFile> files) {
  std::vector<ReportedPlan> plans;
  for (PlanFile& file : files) {
    std::optional<Timings> timings;
    std::string timings_file;
    if (!file.timings.empty()) {
      if (file.timings.size() > 1)
        note(fmt::format("{} of {} are shown alone, since they were named last",
                         file.timings.back().file, file.file));
      timings = std::move(file.timings.back().timings);
      timings_file = file.timings.back().file;
    }
    plans.push_back(reported(file.name, file.file, std::move(file.planned), std::move(file.machine),
                             std::move(timings), timings_file));
  }
  if (plans.empty()) return plans;
  std::stable_sort(plans.begin() + 1, plans.end(),
                   [](const ReportedPlan& a, const ReportedPlan& b) {
                     if (a.timings.has_value() != b.timings.has_value())
                       return a.timings.has_value();
                     return a.prediction.whole.step < b.prediction.whole.step;
                   });
  return plans;
}

}  // namespace

PageContents page_of(std::vector<PlanFile> files, const CommandLine& command_line) {
  PageContents contents;
  contents.commands = commands_of(files);
  contents.plans = reported_plans(std::move(files));
  contents.provenance = make_provenance(command_line);
  return contents;
}

}  // namespace stratplan
