// stratplan trace: steps of plans, predicted and measured, as a file for trace viewers.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/plan_files.hpp"
#include "cli/provenance.hpp"
#include "model/base/error.hpp"
#include "model/cost/simulator.hpp"
#include "planner/prediction.hpp"
#include "report/layers.hpp"
#include "report/trace.hpp"

namespace stratplan {
namespace {

constexpr int most_ranks = 64;  ///< of a plan of which all ranks are drawn

struct TraceOptions {
  std::vector<std::string> files;
  std::string machine;
  std::string output;
};

class Tracing {
 public:
  explicit Tracing(const std::vector<PlanFile>& plans) {
    std::size_t timings = 0;
    for (const PlanFile& plan : plans) timings += plan.timings.size();
    programs_.reserve(plans.size());
    for (const PlanFile& plan : plans) {
      const std::size_t predicted = steps_.size();
      predict(plan, plans.size() > 1);
      for (const TimingsFile& one : plan.timings) {
        add_timings(plan, one, timings > 1);
        // The prediction is drawn where the last measured step lies.
        steps_[predicted].start = steps_.back().start;
      }
    }
  }

  std::string text(const Provenance& provenance) const {
    return to_trace(steps_, runs_, provenance);
  }

 private:
  void predict(const PlanFile& plan, bool ambiguous) {
    const auto& [of_plan, network] = plan.planned;
    const bool all = of_plan.ranks <= most_ranks;
    programs_.push_back(all ? programs_of(of_plan, network) : modelled_programs(of_plan, network));
    if (!all)
      note(fmt::format("{}: {} of {} ranks are drawn, which stand for all", plan.file,
                       programs_.back().size(), of_plan.ranks));
    add_step(plan, ambiguous ? "predicted " + plan.name : "predicted",
             simulate(programs_.back(), plan.machine).ranks);
  }

  /// Adds a step of the last programs.
  TracedStep& add_step(const PlanFile& plan, const std::string& name,
                       std::vector<std::vector<Span>> spans) {
    TracedStep& step = steps_.emplace_back(
        TracedStep{name, &plan.planned.network, &programs_.back(), std::move(spans), {}, {}, {}});
    for (const Program& program : programs_.back())
      step.memory.push_back(memory_over_step(program, plan.machine));
    return step;
  }

  void add_timings(const PlanFile& plan, const TimingsFile& of, bool ambiguous) {
    const RecordedStep& recorded = of.timings.timing.recorded;
    if (recorded.iteration < 0)
      throw InputError(of.file, "/recorded_step",
                       "expected one step op by op, as `run` of this version records it");
    std::vector<std::vector<Span>> spans =
        of_programs(recorded.ranks, programs_.back(), of.file, "/recorded_step/ranks", "span");
    TracedStep& step =
        add_step(plan, ambiguous ? "measured " + of.file : "measured", std::move(spans));
    step.start = recorded.start;
    for (const Program& program : programs_.back())
      step.clock_errors.push_back(recorded.clock_errors[at(program.rank)]);
    runs_.push_back({"run " + of.file, of.timings.parts});
  }

  std::vector<std::vector<Program>> programs_;  ///< by plan; its capacity never changes
  std::vector<TracedStep> steps_;
  std::vector<TracedRun> runs_;
};

}  // namespace

void add_trace(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = program.add_subcommand(
      "trace", "A step's ops on all ranks, predicted and measured, for trace viewers");
  add_plan_files(*command, options->files);
  add_plan_machine(*command, options->machine);
  command->add_option("-o,--output", options->output, "the trace, for https://ui.perfetto.dev")
      ->required();
  command->footer(
      "Examples:\n  stratplan run plan.json -o timings.json && stratplan trace plan.json "
      "timings.json -o trace.json\n  stratplan trace plan.json -m lassen -o trace.json");
  command->callback([options, &command_line] {
    check_output(options->output);
    const std::vector<PlanFile> plans =
        read_plan_files(options->files, FolderContents::RecommendedPlan, options->machine);
    write_file_atomically(options->output, Tracing(plans).text(make_provenance(command_line)));
  });
}

}  // namespace stratplan
