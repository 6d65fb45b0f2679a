#include "report/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/shell.hpp"
#include "model/base/text.hpp"
#include "model/plan/timings.hpp"
#include "report/choice.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Joins names of plans. Names that hold a comma stand in quotes.
std::string plans_text(std::vector<std::string> names) {
  for (std::string& name : names)
    if (name.find(',') != std::string::npos) name = fmt::format("\"{}\"", name);
  return joined(names);
}

std::vector<std::string> row_of(const TunedPlan& tuned) {
  const Seconds predicted =
      tuned.plan && tuned.plan->prediction ? tuned.plan->prediction->step : Seconds{0};
  const std::string prediction = predicted.value > 0 ? step_text(*tuned.plan->prediction) : "-";
  const std::string tier = predicted.value > 0 ? tier_text(*tuned.plan->prediction) : "-";
  if (!tuned.measured)
    return {tuned.name, prediction, tier, "-", "-", "-", "-", "-", "-", tuned.not_run};
  const Measured& measured = *tuned.measured;
  return {
      tuned.name,
      prediction,
      tier,
      milliseconds(measured.median),
      milliseconds(measured.p10) + " .. " + milliseconds(measured.p90),
      signed_percent(relative_error(predicted, measured.median)),
      measured.verification ? fmt::format("{:.1e}", measured.verification->loss_difference) : "-",
      measured.verification ? fmt::format("{:.1e}", measured.verification->gradient_difference)
                            : "-",
      measured.verification ? fmt::format("{:.1e}", measured.verification->tolerance) : "-",
      !measured.verification          ? "not compared"
      : measured.verification->passed ? "equal"
                                      : "DIFFERS"};
}

bool disturbed(const TunedPlan& tuned) {
  return tuned.measured && tuned.measured->foreign_load > tolerated_foreign_load;
}

std::string faster_remark(const AutotuneResult& result) {
  std::string text;
  if (!result.plans.front().measured) return text;
  const Seconds ours = result.plans.front().measured->median;
  for (const TunedPlan* tuned : result.faster())
    text += fmt::format("{}{} ({} ms, {})", text.empty() ? "" : ", ", tuned->name,
                        milliseconds(tuned->measured->median),
                        signed_percent(tuned->measured->median / ours - 1));
  if (text.empty()) return text;
  return fmt::format(
      "Measured faster than the recommended plan in every round: {}. So plan.json is {}. {}.", text,
      result.winner().name,
      std::ranges::any_of(result.plans, disturbed)
          ? "The prediction may still be right, because other processes used the machine"
          : "The prediction chose wrongly here");
}

std::string tie_remark(const AutotuneResult& result) {
  if (!result.planning.tie) return {};
  return fmt::format(
      "Predictions could not tell these plans apart, so the simplest is recommended: {}.",
      plans_text(result.planning.tie->plans));
}

std::string disturbed_remark(const AutotuneResult& result) {
  std::vector<std::string> names;
  double worst = 0;
  for (const TunedPlan& tuned : result.plans) {
    if (!disturbed(tuned)) continue;
    names.push_back(tuned.name);
    worst = std::max(worst, tuned.measured->foreign_load);
  }
  if (names.empty()) return {};
  return fmt::format(
      "Other processes used up to {:.0f} % of the machine during runs of {}. Do not trust the "
      "times of these plans, and measure again when the machine is quiet.",
      100 * worst, joined(names));
}

std::string drift_remark(const MachineProfile& machine) {
  if (!machine.drift) return {};
  const Drift& drift = *machine.drift;
  return fmt::format(
      "Kernels take {:.2f} times as long as when the machine was profiled ({} kernels measured "
      "again, ratios from {:.2f} to {:.2f}): {}.",
      drift.ratio, drift.kernels, drift.least, drift.most,
      drift.even ? "predictions are scaled by this ratio"
                 : "the kernels disagree, so predictions are not scaled and may be off by as much");
}

std::string section_of_machine(const AutotuneResult& result, const AutotuneRequest& request) {
  const Json p = request.provenance.json();
  const auto text = [&](const char* key) {
    return p.contains(key) && p.at(key).is_string() ? p.at(key).get<std::string>()
                                                    : std::string("unknown");
  };
  const auto command = p.contains("command") ? p.at("command").get<std::vector<std::string>>()
                                             : std::vector<std::string>{};
  std::string section = "## Machine and command\n\n";
  section += fmt::format("- command: `{}`\n", shell_line(command));
  section += fmt::format("- program: {} {}, {}, {}\n", text("program"), text("version"),
                         text("build_type"), text("compiler"));
  section += fmt::format("- date: {}; host: {}; system: {}; device: {}\n", text("date"),
                         text("host"), text("system"), text("device"));
  if (p.contains("libraries"))
    for (const auto& [part, description] : p.at("libraries").items())
      section += fmt::format("- {}: {}\n", part, description.get<std::string>());
  section += fmt::format(
      "- profile: {}, measured with {} ranks of {} threads at once, {} kernels, fingerprint {} "
      "(machine.json)\n",
      result.machine.name, result.machine.measured_ranks, result.machine.threads_per_rank,
      result.machine.kernels.size(), result.machine.fingerprint());
  section += fmt::format("- backend {}, seed {}\n", request.backend, request.seed);
  return section;
}

std::string section_of_search(const PlanningResult& planning) {
  std::string section = fmt::format(
      "{} decompositions of {} blocks were considered ({} more were illegal). The objective is "
      "{}.\n",
      planning.candidates, planning.blocks, planning.rejections, objective_text(planning));
  if (!planning.reranking.empty()) section += "\n" + planning.reranking + "\n";
  return section;
}

std::string text_of(const VerificationResult& verification) {
  std::string text = fmt::format("{}, tolerance {:.1e}.",
                                 verification.worst_tensor.empty()
                                     ? "No gradient differs"
                                     : "Worst gradient: " + verification.worst_tensor,
                                 verification.tolerance);
  if (verification.turned > 0)
    text += fmt::format(
        " Rounding changed {} signs of ReLU inputs or positions of maxima, where gradients jump. "
        "Gradients were compared with the same signs and positions in both runs.",
        verification.turned);
  return text;
}

std::string section_of_plan(const PlanComparison& compared, const Network& network) {
  const TunedPlan& tuned = *compared.plan;
  const Measured& measured = *tuned.measured;
  std::vector<std::string> rounds;
  for (const Seconds round : measured.rounds) rounds.push_back(milliseconds(round));
  std::string section = fmt::format("### {}\n\n", tuned.name);
  section += fmt::format(
      "Medians of the rounds: {} ms, {} steps in all; other processes used at most {:.1f} % of the "
      "machine. Loss of the first step: {:.9g}. {}\n\n",
      joined(rounds), measured.samples, 100 * measured.foreign_load, measured.loss,
      measured.verification ? text_of(*measured.verification)
                            : "It was not compared with an undivided run; --all compares it.");
  for (const auto& adjustment : tuned.plan->adjustments)
    section += "- adjusted " + adjustment + "\n";
  if (!tuned.plan->adjustments.empty()) section += "\n";
  return section + to_markdown(kind_table(compared.comparison)) + "\nFarthest off:\n\n" +
         to_markdown(worst_layers(network, compared.comparison, 5)) + "\n";
}

}  // namespace

Table accuracy_table(const AutotuneResult& result) {
  using enum Table::Align;
  Table table{{{"plan", Left},
               {"predicted ms"},
               {"tier", Left},
               {"measured ms"},
               {"p10 .. p90"},
               {"error"},
               {"loss diff."},
               {"gradient diff."},
               {"allowed"},
               {"undivided run", Left}},
              {}};
  for (const TunedPlan& tuned : result.plans) table.rows.push_back(row_of(tuned));
  return table;
}

std::vector<std::string> remarks(const AutotuneResult& result) {
  std::vector<std::string> lines;
  const std::string drift = drift_remark(result.machine);
  if (!drift.empty()) lines.push_back(drift);
  const std::string overlap = overlap_text(result.planning.recommended.execution, result.network,
                                           result.planning.recommended.layers);
  if (!overlap.empty()) lines.push_back(fmt::format("In the recommended plan {}.", overlap));
  const std::string memory = memory_text(result.planning.recommended.execution);
  if (!memory.empty())
    lines.push_back(fmt::format("The recommended plan saves memory: {}.", memory));
  for (const TunedPlan& tuned : result.plans)
    if (!tuned.aliases.empty())
      lines.push_back(fmt::format("{} is also {}.", tuned.name, plans_text(tuned.aliases)));
  if (const std::string tie = tie_remark(result); !tie.empty()) lines.push_back(tie);
  const std::string faster = faster_remark(result);
  if (!faster.empty()) lines.push_back(faster);
  const std::string disturbed = disturbed_remark(result);
  if (!disturbed.empty()) lines.push_back(disturbed);
  for (const TunedPlan& tuned : result.plans)
    if (tuned.differs())
      lines.push_back(
          fmt::format("{}: the first step DIFFERS from the undivided run's: the tensor {} differs "
                      "by {:.1e} (tolerance {:.1e}).",
                      tuned.name, tuned.measured->verification->worst_tensor,
                      tuned.measured->verification->gradient_difference,
                      tuned.measured->verification->tolerance));
  if (result.interrupted)
    lines.push_back(
        "The job was interrupted: this is the best answer so far. The same command goes on.");
  else if (!result.ended.empty())
    lines.push_back(fmt::format("Measuring ended because {}.", result.ended));
  if (result.reused)
    lines.push_back(
        "Nothing was run again, since the results folder holds measurements of the same plans by "
        "the same program; --fresh runs the plans again.");
  return lines;
}

std::vector<PlanComparison> compare_plans(const AutotuneResult& result) {
  std::vector<PlanComparison> comparisons;
  for (const TunedPlan& tuned : result.plans) {
    if (!tuned.measured) continue;
    const std::string file = (tuned.folder / "timings.json").string();
    comparisons.push_back(
        {&tuned, compare({*tuned.plan, result.network}, read_timings(file), result.machine, file)});
  }
  return comparisons;
}

/// Returns a text with the predicted memory per rank and the measured growth of the process or of
/// its device's memory. Libraries take some megabytes of their own, so the comparison says little
/// for small networks.
std::string memory_line(const TunedPlan& recommended) {
  const std::string predicted = memory_text(*recommended.plan->prediction);
  if (!recommended.measured) return fmt::format("Memory per rank: {} predicted.\n\n", predicted);
  const Bytes taken = read_timings((recommended.folder / "timings.json").string()).resident;
  if (taken.value == 0) return fmt::format("Memory per rank: {} predicted.\n\n", predicted);
  return fmt::format(
      "Memory per rank: {} predicted for tensors and scratch memory; training took {}, including "
      "what libraries keep for themselves.\n\n",
      predicted, readable(taken));
}

std::string accuracy_report(const AutotuneResult& result, const AutotuneRequest& request) {
  const Plan& recommended = result.planning.recommended;
  const auto comparisons = compare_plans(result);
  std::string report = fmt::format("# {} on {} ranks, batch {}\n\n", result.network.name,
                                   request.ranks, result.network.batch);
  report +=
      "Step times are in milliseconds. Predictions were made before the first run; measured times "
      "are medians of the rounds' medians, and p10 .. p90 are over the steps of all rounds. Error "
      "is predicted / measured - 1. Loss and gradients of the first step of the plan to use (with "
      "--all, of each plan) are compared with those of an undivided run of the same network: the "
      "loss by its relative difference, each gradient tensor by the norm of its difference. The "
      "table shows "
      "the tensor that is nearest to its allowed difference. The allowed difference is what "
      "rounding can cause, and follows from the lengths of the sums. Where rounding changes signs "
      "of ReLU inputs or positions of maxima, both runs are compared with the same signs and "
      "positions.\n\n";
  report += to_markdown(accuracy_table(result)) + "\n";
  for (const auto& remark : remarks(result)) report += "- " + remark + "\n";
  report += "\n## The recommended plan\n\n" + section_of_search(result.planning) + "\n";
  report += to_markdown(result.plans.front().measured
                            ? decomposition_table(result.network, recommended.layers,
                                                  comparisons.front().comparison.predicted)
                            : decomposition_table(result.network, recommended.layers)) +
            "\n";
  report += memory_line(result.plans.front());
  report +=
      "## Predicted against measured, by kind of op\n\nThe measured times of a plan come from one "
      "round: the round whose median step is the middle one. If two rounds are in the middle, it "
      "is the slower "
      "one. `iteration` is the median step of that round. The time of an op is first the median "
      "over the steps of that round, on each rank, and then the mean over the ranks. Time spent "
      "waiting for a slower partner counts in the op that waits. A sum of such medians can be far "
      "below the median step, if different ops are slow in different steps.\n\n";
  for (const auto& compared : comparisons) report += section_of_plan(compared, result.network);
  return report + section_of_machine(result, request);
}

}  // namespace stratplan
