#include "tuner/autotune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "job/launcher.hpp"
#include "model/base/error.hpp"
#include "model/base/index.hpp"
#include "model/base/json/json.hpp"
#include "model/base/statistics.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/process.hpp"
#include "model/plan/timings.hpp"
#include "tuner/measuring.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Most repetitions of one run that other processes disturbed.
constexpr int most_repetitions = 2;

// ---------------------------------------------------------------- plans

bool same_decompositions(const Plan& a, const Plan& b) {
  return a.ranks == b.ranks && a.layers == b.layers && a.execution == b.execution;
}

/// Returns a plan's name as the name of a folder: "h2-w2" for "H2 W2".
std::string folder_name(const std::string& name) {
  std::string text;
  for (const char c : name)
    text += std::isalnum(static_cast<unsigned char>(c))
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '-';
  return text;
}

/// Returns the recommended plan, the fastest one if it is another, then the baselines. A baseline
/// that equals one of the first two becomes an alias of that plan.
std::vector<TunedPlan> plans_to_run(const PlanningResult& planning, const fs::path& folder) {
  std::vector<TunedPlan> plans{{"recommended", {}, planning.recommended, "", {}, folder}};
  const auto add = [&](const Considered& considered) {
    const auto same = std::ranges::find_if(plans, [&](const TunedPlan& known) {
      return considered.plan && known.plan && same_decompositions(*considered.plan, *known.plan);
    });
    if (same == plans.end()) {
      plans.push_back({considered.name,
                       considered.aliases,
                       considered.plan,
                       considered.infeasible,
                       {},
                       folder / "plans" / folder_name(considered.name)});
      return;
    }
    std::vector<std::string> names = considered.aliases;
    names.insert(names.begin(), considered.name);
    for (const std::string& name : names)
      if (name != same->name && std::ranges::find(same->aliases, name) == same->aliases.end())
        same->aliases.push_back(name);
  };
  if (planning.tie && planning.tie->plans.front() != planning.chosen) add(fastest(planning));
  for (const Considered& baseline : planning.baselines) add(baseline);
  return plans;
}

// ---------------------------------------------------------------- running

/// The measurements of one run of `stratplan run`.
struct Run {
  Timings timings;
  double foreign_load = 0;
};

class Runner {
 public:
  /// `repetitions`: how many disturbed runs are repeated in total. After that a disturbed run
  /// counts as it is, because the machine may never be quiet.
  Runner(const AutotuneRequest& request, Log& log, int repetitions)
      : request_(request), log_(log), repetitions_left_(repetitions) {}

  /// Runs one training step on one rank and dumps its loss and gradients. The runs of the first
  /// round are compared with the dump.
  void run_undivided(const Network& network) {
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

  /// Runs one round of one plan. Repeats the run if other processes disturbed it. Returns the least
  /// disturbed repetition, whose timings become the round's file.
  Run run(const TunedPlan& tuned, int round) {
    std::optional<Run> best;
    for (int repetition = 0; repetition <= most_repetitions; ++repetition) {
      log_.phase(fmt::format("running {} (round {} of {}{})", tuned.name, round + 1,
                             request_.rounds,
                             repetition ? ", again: other processes used the machine" : ""));
      const Run run = run_once(tuned, round);
      if (!best || run.foreign_load < best->foreign_load) {
        best = run;
        fs::rename(timings_of_repetition(tuned), timings_of(tuned, round));
      }
      if (best->foreign_load <= tolerated_foreign_load || repetitions_left_ == 0) break;
      if (repetition < most_repetitions) --repetitions_left_;
    }
    fs::remove(timings_of_repetition(tuned));
    return *best;
  }

  fs::path timings_of(const TunedPlan& tuned, int round) const {
    return tuned.folder / fmt::format("timings-{}.json", round + 1);
  }
  fs::path dump() const { return request_.folder / "undivided.safetensors"; }
  /// Whether the user interrupted a run.
  bool interrupted() const { return interrupted_; }

 private:
  static fs::path timings_of_repetition(const TunedPlan& tuned) {
    return tuned.folder / "timings-repetition.json";
  }
  [[noreturn]] void fail(const LaunchResult& result, const std::string& name) {
    interrupted_ = result.interrupted;
    throw Error(
        static_cast<ExitCode>(result.exit_code),
        fmt::format("the run of the plan {} failed with exit code {}", name, result.exit_code));
  }

  std::vector<std::string> arguments(const fs::path& plan,
                                     const std::vector<std::string>& more) const {
    std::vector<std::string> all{"run",
                                 plan.string(),
                                 "--quiet",
                                 "--backend",
                                 request_.backend,
                                 "--seed",
                                 std::to_string(request_.seed)};
    if (request_.precision.scales_loss())
      all.insert(
          all.end(),
          {"--loss-scale", "1024"});  // an overflow in the first step would prevent its comparison
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Run run_once(const TunedPlan& tuned, int round) {
    const double predicted = std::max(tuned.plan->prediction->step.value, 1e-6);
    const int steps =
        static_cast<int>(std::clamp(std::ceil(request_.least_time.value / predicted), 4.0, 200.0));
    const int warmup = predicted > 0.5 ? 1 : 2;
    const fs::path timings = timings_of_repetition(tuned);
    std::vector<std::string> more{"--steps",  std::to_string(steps),
                                  "--warmup", std::to_string(warmup),
                                  "-o",       timings.string()};
    if (round == 0) more.insert(more.end(), {"--against", dump().string()});
    const auto result = launch({tuned.plan->ranks, tuned.plan->execution.threads_per_rank,
                                arguments(tuned.folder / "plan.json", more), "/dev/null"});
    if (result.exit_code != 0 && result.exit_code != static_cast<int>(ExitCode::ValidationFailed))
      fail(result, tuned.name);
    // If verification fails, mpirun ends without waiting for its ranks. The ranks' processor time
    // would then count as foreign load.
    return {read_timings(timings.string()), result.exit_code == 0 ? result.foreign_load : 0};
  }

  const AutotuneRequest& request_;
  Log& log_;
  int repetitions_left_;
  bool interrupted_ = false;
};

Measured summarize(const std::vector<Run>& runs) {
  Measured measured;
  std::vector<double> medians, steps;
  for (const Run& run : runs) {
    const Timing& timing = run.timings.timing;
    medians.push_back(timing.median().value);
    measured.rounds.push_back(timing.median());
    for (const Seconds step : timing.steps) steps.push_back(step.value);
    measured.foreign_load = std::max(measured.foreign_load, run.foreign_load);
  }
  measured.median = {median(medians)};
  measured.p10 = {quantile(steps, 0.1)};
  measured.p90 = {quantile(steps, 0.9)};
  measured.samples = steps.size();
  measured.loss = runs.front().timings.timing.losses.front();
  measured.verification = *runs.front().timings.verification;
  return measured;
}

/// Orders the rounds by their median step time. Keeps the timings of the middle round as
/// timings.json, and removes the timings of the other rounds.
void keep_middle_round(const Runner& runner, const TunedPlan& tuned, const std::vector<Run>& runs) {
  std::vector<int> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return runs[at(a)].timings.timing.median() < runs[at(b)].timings.timing.median();
  });
  const int middle = order[order.size() / 2];
  for (const int round : order)
    if (round != middle) fs::remove(runner.timings_of(tuned, round));
  fs::rename(runner.timings_of(tuned, middle), tuned.folder / "timings.json");
}

/// Runs all plans in each round, so that a drift of the machine affects all plans alike. A baseline
/// that fails is left out, with the reason.
void measure(AutotuneResult& result, Runner& runner, int rounds) {
  std::vector<std::vector<Run>> runs(result.plans.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
      TunedPlan& tuned = result.plans[i];
      if (!tuned.not_run.empty()) continue;
      try {
        runs[i].push_back(runner.run(tuned, round));
      } catch (const Error& error) {
        if (i == 0 || runner.interrupted()) throw;
        tuned.not_run = error.what();
      }
    }
  }
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    if (!result.plans[i].not_run.empty()) continue;
    result.plans[i].measured = summarize(runs[i]);
    keep_middle_round(runner, result.plans[i], runs[i]);
  }
}

void write_plans(const AutotuneResult& result, const AutotuneRequest& request) {
  write_document(request.folder / "machine.json", "machine", to_json(result.machine));
  for (const TunedPlan& tuned : result.plans) {
    if (!tuned.plan) continue;
    make_folders(tuned.folder);
    write_document(tuned.folder / "plan.json", "plan",
                   to_json(*tuned.plan, result.network, request.provenance));
  }
}

/// Returns a fingerprint of everything on which the measurements depend: the program's file, the
/// plans, and how they were run.
std::string key_of(const AutotuneResult& result, const AutotuneRequest& request) {
  const fs::path program = own_executable();
  std::string text =
      fmt::format("{} {} {} {} {} {}", fs::file_size(program),
                  fs::last_write_time(program).time_since_epoch().count(),
                  result.network.fingerprint(), request.backend, request.seed, request.rounds);
  for (const TunedPlan& tuned : result.plans) {
    text += "\n" + tuned.name + " " + (tuned.plan ? fingerprint(*tuned.plan) : "none");
  }
  return fingerprint_of(text);
}

/// Takes the measurements of the same runs from `file`, unless other processes disturbed any of
/// them. Returns whether nothing is left to run.
bool reuse(AutotuneResult& result, const fs::path& file, const std::string& key) {
  const auto known = read_measurements(file, key);
  if (!known) return false;
  for (const auto& [name, measured] : *known)
    if (measured.foreign_load > tolerated_foreign_load) return false;
  for (const TunedPlan& tuned : result.plans) {
    const bool kept = known->contains(tuned.name) && fs::exists(tuned.folder / "timings.json");
    if (tuned.not_run.empty() && !kept) return false;
  }
  for (TunedPlan& tuned : result.plans)
    if (tuned.not_run.empty()) tuned.measured = known->at(tuned.name);
  return true;
}

/// The planner must not choose micro-batches, because all plans are measured and run on one
/// network.
PlanningOptions planning_options(const AutotuneRequest& request) {
  PlanningOptions options;
  options.overrides = request.overrides;
  options.memory_limit = request.memory_limit;
  options.execution.precision = request.precision;
  options.free.micro_batches = false;
  return options;
}

/// Makes the plans, measures the kernels and transfers that they need, and writes their files.
void plan_runs(AutotuneResult& result, const AutotuneRequest& request, Measuring& measuring,
               const std::optional<Drift>& drift, Log& log) {
  PlannedOnMeasurements planned = plan_and_measure(
      result.network, request.network, planning_options(request), measuring, drift, log);
  result.machine = std::move(planned.machine);
  result.planning = std::move(planned.planning);
  result.plans = plans_to_run(result.planning, request.folder);
  write_plans(result, request);
}

/// Returns the drift that machine.json in the results folder records. Returns nothing if the local
/// profile has been measured again since.
std::optional<Drift> recorded_drift(const AutotuneRequest& request) {
  const fs::path file = request.folder / "machine.json";
  if (request.fresh || !fs::exists(file)) return {};
  try {
    const MachineProfile recorded = read_machine(file.string());
    const MachineProfile local =
        read_machine("local", recorded.measured_ranks, recorded.threads_per_rank);
    const bool same = std::ranges::all_of(recorded.kernels, [&](const auto& known) {
      const auto found = local.kernels.find(known.first);
      return found != local.kernels.end() && found->second.median == known.second.median;
    });
    return same ? recorded.drift : std::nullopt;
  } catch (const InputError&) {
    return {};
  }
}

Measurements measurements_of(const AutotuneResult& result) {
  Measurements all;
  for (const TunedPlan& tuned : result.plans)
    if (tuned.measured) all[tuned.name] = *tuned.measured;
  return all;
}

}  // namespace

std::vector<const TunedPlan*> AutotuneResult::faster() const {
  std::vector<const TunedPlan*> result;
  const Measured& ours = *plans.front().measured;
  for (const TunedPlan& tuned : plans) {
    if (!tuned.measured || tuned.measured->median.value > 0.99 * ours.median.value) continue;
    bool every_round = true;
    for (std::size_t round = 0; round < ours.rounds.size(); ++round)
      every_round = every_round && tuned.measured->rounds[round] < ours.rounds[round];
    if (every_round) result.push_back(&tuned);
  }
  return result;
}

AutotuneResult autotune(const AutotuneRequest& request, Log& log) {
  AutotuneResult result;
  result.network = read_network(request.network, request.overrides);
  write_file_atomically(request.folder / "command.json", request.provenance.json().dump(1) + "\n");
  Measuring measuring(request.ranks, request.backend, log);
  const std::optional<Drift> before = recorded_drift(request);
  plan_runs(result, request, measuring, before, log);
  const fs::path measurements = request.folder / "measurements.json";
  result.reused = !request.fresh && reuse(result, measurements, key_of(result, request));
  if (result.reused) return result;

  log.phase("checking whether the machine has drifted since it was measured");
  const auto drift = measuring.find_drift(result.network, result.planning.recommended);
  if (drift != before) plan_runs(result, request, measuring, drift, log);
  Runner runner(request, log, static_cast<int>(result.plans.size()));
  runner.run_undivided(result.network);
  measure(result, runner, request.rounds);
  fs::remove(runner.dump());
  write_measurements(measurements, key_of(result, request), measurements_of(result));
  return result;
}

}  // namespace stratplan
