#include "tuner/race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "job/launcher.hpp"
#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/index.hpp"
#include "model/base/json/json.hpp"
#include "model/base/statistics.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/text.hpp"
#include "model/machine/error_model.hpp"
#include "model/plan/timings.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Most repetitions of one run that other processes disturbed.
constexpr int most_repetitions = 2;

/// The user interrupted a run.
struct Interrupted {};

[[noreturn]] void fail(const LaunchResult& result, const std::string& name) {
  if (result.interrupted) throw Interrupted{};
  throw Error(
      static_cast<ExitCode>(result.exit_code),
      fmt::format("the run of the plan {} failed with exit code {}", name, result.exit_code));
}

fs::path timings_of_repetition(const TunedPlan& tuned) {
  return tuned.folder / "timings-repetition.json";
}

}  // namespace

bool has_lost(const Measured& plan, const Measured& fastest) {
  constexpr double clearly = 1.02, deviations = 2;
  const double ratio = plan.median / fastest.median;
  const auto variance = [](const Measured& one) {
    return 1 / static_cast<double>(std::max<std::size_t>(one.rounds.size(), 1));
  };
  const double drift = error_model().drift * std::sqrt(variance(plan) + variance(fastest));
  return ratio > clearly && (plan.p10 > fastest.p90 || std::log(ratio) > deviations * drift);
}

fs::path Race::timings_of(const TunedPlan& tuned, int round) const {
  return tuned.folder / fmt::format("timings-{}.json", round + 1);
}

std::vector<std::string> Race::arguments(const fs::path& plan,
                                         const std::vector<std::string>& more) const {
  std::vector<std::string> all{"run",
                               plan.string(),
                               "--quiet",
                               "--backend",
                               request_.backend,
                               "--seed",
                               std::to_string(request_.seed),
                               "--learning-rate",  // so small that no network diverges
                               "1e-6"};
  if (request_.precision.scales_loss())  // an overflow in the first step would prevent comparing it
    all.insert(all.end(), {"--loss-scale", "1024"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Runs one training step on one rank and dumps its loss and gradients. The plans' first steps are
/// compared with the dump.
void Race::run_undivided(const Network& network) {
  Plan plan = uniform_plan(network, Decomposition::parse("N1"));
  plan.name = "undivided";
  plan.network_source = request_.network;
  plan.overrides = request_.overrides;
  plan.execution.precision = request_.precision;
  const fs::path file = request_.folder / "undivided.json";
  write_document(file, "plan", to_json(plan, network, request_.provenance));
  log_.phase("running one undivided step, for comparison");
  const auto result =
      launch({1, 1, arguments(file, {"--steps", "1", "--warmup", "0", "--dump", dump().string()}),
              "/dev/null"});
  if (result.exit_code != 0) fail(result, "undivided");
}

Race::Run Race::run_once(const TunedPlan& tuned) {
  const double predicted = std::max(tuned.plan->prediction->step.value, 1e-6);
  const double least = predicted > 2 && !request_.thorough ? 2 : 4;
  const int steps =
      static_cast<int>(std::clamp(std::ceil(request_.least_time.value / predicted), least, 200.0));
  const int warmup = predicted > 0.5 ? 1 : 2;
  const fs::path timings = timings_of_repetition(tuned);
  const auto result = launch(
      {tuned.plan->ranks, tuned.plan->execution.threads_per_rank,
       arguments(tuned.folder / "plan.json", {"--steps", std::to_string(steps), "--warmup",
                                              std::to_string(warmup), "-o", timings.string()}),
       "/dev/null"});
  if (result.exit_code != 0) fail(result, tuned.name);
  return {read_timings(timings.string()), result.foreign_load, 0};
}

/// Runs one round of one plan. Repeats the run if other processes disturbed it. Returns the least
/// disturbed repetition, whose timings become the round's file.
Race::Run Race::run_one(const TunedPlan& tuned, int round) {
  std::optional<Run> best;
  int repeated = 0;
  const std::string turn =
      request_.rounds == 1 ? "" : fmt::format(", round {} of {}", round + 1, request_.rounds);
  for (int repetition = 0; repetition <= most_repetitions; ++repetition) {
    log_.phase(fmt::format("running {}{}{}", tuned.name, turn,
                           repetition ? ", again: other processes used the machine" : ""));
    const Run run = run_once(tuned);
    repeated = repetition;
    if (!best || run.foreign_load < best->foreign_load) {
      best = run;
      fs::rename(timings_of_repetition(tuned), timings_of(tuned, round));
    }
    if (best->foreign_load <= tolerated_foreign_load || repetitions_left_ == 0) break;
    if (repetition < most_repetitions) --repetitions_left_;
  }
  fs::remove(timings_of_repetition(tuned));
  best->repetitions = repeated;
  const Timing& timing = best->timings.timing;
  journal_.write("ran",
                 fmt::format("ran {}, round {}: {} ms ({} steps)", tuned.name, round + 1,
                             milliseconds(timing.median()), timing.steps.size()),
                 {{"plan", tuned.name},
                  {"round", round + 1},
                  {"step_seconds", timing.median().value},
                  {"steps", timing.steps.size()}});
  return *best;
}

Measured Race::summary_of(const std::vector<Run>& runs) {
  Measured measured;
  std::vector<double> medians, steps;
  for (const Run& run : runs) {
    const Timing& timing = run.timings.timing;
    medians.push_back(timing.median().value);
    measured.rounds.push_back(timing.median());
    for (const Seconds step : timing.steps) steps.push_back(step.value);
    measured.foreign_load = std::max(measured.foreign_load, run.foreign_load);
    measured.repetitions += run.repetitions;
  }
  measured.median = {median(medians)};
  measured.p10 = {quantile(steps, 0.1)};
  measured.p90 = {quantile(steps, 0.9)};
  measured.samples = steps.size();
  measured.loss = runs.front().timings.timing.losses.front();
  return measured;
}

/// Orders the rounds by their median step time. Keeps the timings of the middle round as
/// timings.json, and removes the timings of the other rounds.
void Race::keep_middle_round(const Runner& runner) const {
  std::vector<int> order(runner.runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return runner.runs[at(a)].timings.timing.median() < runner.runs[at(b)].timings.timing.median();
  });
  const int middle = order[order.size() / 2];
  for (const int round : order)
    if (round != middle) fs::remove(timings_of(*runner.plan, round));
  fs::rename(timings_of(*runner.plan, middle), runner.plan->folder / "timings.json");
}

void Race::run_round(std::vector<Runner>& runners, int round, Seconds until) {
  for (Runner& runner : runners) {
    const bool first = &runner == &runners.front();
    if (runner.left) continue;
    if (stop_requested()) throw Interrupted{};
    if ((!first || round > 0) && journal_.elapsed() + takes(runner) > until) continue;
    const Seconds start = journal_.elapsed();
    try {
      runner.runs.push_back(run_one(*runner.plan, round));
      runner.took = journal_.elapsed() - start;
    } catch (const Error& error) {
      if (first) throw;
      runner.plan->not_run = error.what();
      runner.left = true;
    }
  }
}

/// About how long a run of the plan takes: as long as its last one, else by the predicted step.
Seconds Race::takes(const Runner& runner) const {
  constexpr Seconds start{2};
  if (runner.took.value > 0) return runner.took;
  return start + std::max(request_.least_time, runner.plan->plan->prediction->step * 4);
}

void Race::drop_losers(std::vector<Runner>& runners) {
  std::optional<Measured> fastest;
  for (const Runner& runner : runners)
    if (!runner.runs.empty())
      if (const Measured one = summary_of(runner.runs); !fastest || one.median < fastest->median)
        fastest = one;
  for (Runner& runner : runners)
    if (&runner != &runners.front() && !runner.left && !runner.runs.empty())
      runner.left = has_lost(summary_of(runner.runs), *fastest);
}

bool Race::run(std::vector<TunedPlan>& plans, Seconds until) {
  std::vector<Runner> runners;
  for (TunedPlan& tuned : plans)
    if (tuned.not_run.empty()) runners.push_back({&tuned});
  repetitions_left_ = static_cast<int>(runners.size());
  bool interrupted = false;
  try {
    for (int round = 0; round < request_.rounds; ++round) {
      run_round(runners, round, until);
      if (!request_.thorough) drop_losers(runners);
    }
  } catch (const Interrupted&) {
    interrupted = true;
  }
  for (Runner& runner : runners) {
    if (runner.runs.empty()) {
      if (runner.plan->not_run.empty())
        runner.plan->not_run = interrupted ? "interrupted" : "the time was up";
      continue;
    }
    runner.plan->measured = summary_of(runner.runs);
    keep_middle_round(runner);
  }
  return interrupted;
}

void Race::verify_one(TunedPlan& tuned) {
  log_.phase(fmt::format("comparing {} with the undivided step", tuned.name));
  const fs::path timings = tuned.folder / "timings-verified.json";
  const auto result =
      launch({tuned.plan->ranks, tuned.plan->execution.threads_per_rank,
              arguments(tuned.folder / "plan.json", {"--steps", "1", "--warmup", "0", "--against",
                                                     dump().string(), "-o", timings.string()}),
              "/dev/null"});
  if (result.exit_code != 0 && result.exit_code != static_cast<int>(ExitCode::ValidationFailed))
    fail(result, tuned.name);
  tuned.measured->verification = read_timings(timings.string()).verification;
  fs::remove(timings);
}

bool Race::verify(const Network& network, const std::vector<TunedPlan*>& plans) {
  bool interrupted = false;
  try {
    run_undivided(network);
    for (TunedPlan* tuned : plans)
      if (tuned->measured) verify_one(*tuned);
  } catch (const Interrupted&) {
    interrupted = true;
  } catch (const Error& error) {
    log_.note(fmt::format("plans are not compared with an undivided run: {}", error.what()));
  }
  fs::remove(dump());
  return interrupted;
}

}  // namespace stratplan
