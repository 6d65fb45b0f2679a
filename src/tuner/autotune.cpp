#include "tuner/autotune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "job/rank.hpp"
#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/process.hpp"
#include "model/base/text.hpp"
#include "model/cost/op_cost.hpp"
#include "tuner/adopted.hpp"
#include "tuner/deciding.hpp"
#include "tuner/measuring.hpp"
#include "tuner/race.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

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

/// The rivals that are worth a run.
std::vector<const Considered*> raced_rivals(const PlanningResult& planning) {
  constexpr std::size_t most = 3;
  std::vector<const Considered*> rivals = rivals_of(planning);
  rivals.resize(std::min(most, rivals.size()));
  return rivals;
}

/// Returns the recommended plan, the fastest one if it is another, the likeliest rivals, then the
/// baselines. A plan that equals one before it becomes an alias of that plan.
std::vector<TunedPlan> plans_to_run(const PlanningResult& planning, const fs::path& folder) {
  std::vector<TunedPlan> plans{
      {"recommended", {}, planning.recommended, "", {}, folder / "plans" / "recommended"}};
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
  add(fastest(planning));
  for (const Considered* rival : raced_rivals(planning)) add(*rival);
  for (const Considered& baseline : planning.baselines) add(baseline);
  return plans;
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
  std::string text = fmt::format("{} {} {} {} {}", own_build(), result.network.fingerprint(),
                                 request.backend, request.seed, request.rounds);
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

/// A plan that is not run unless all plans are: the others decide.
std::string why_not_run(const TunedPlan& tuned, const Prediction& fastest) {
  return fmt::format("predicted {:.2f} times as slow as the fastest; --all runs it",
                     tuned.plan->prediction->step / fastest.step);
}

/// Leaves out the runs that decide nothing. The recommended plan, the fastest, its rivals and plain
/// sample parallelism over all ranks remain.
void leave_out_others(std::vector<TunedPlan>& plans, const PlanningResult& planning) {
  const std::vector<const Considered*> rivals = raced_rivals(planning);
  const Considered& best = fastest(planning);
  for (TunedPlan& tuned : plans) {
    const auto is = [&](const std::string& name) {
      return tuned.name == name || std::ranges::count(tuned.aliases, name) > 0;
    };
    const bool decides =
        is("recommended") || is("sample") || is(best.name) ||
        std::ranges::any_of(rivals, [&](const Considered* rival) { return is(rival->name); });
    if (!decides && tuned.not_run.empty())
      tuned.not_run = why_not_run(tuned, *best.plan->prediction);
  }
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

/// One call of autotune.
class Autotuning {
 public:
  Autotuning(const AutotuneRequest& request, Log& log)
      : request_(request),
        log_(log),
        journal_(request.folder / "log", request.events),
        measuring_(request.ranks, request.backend, log) {}

  AutotuneResult run() {
    result_.network = read_network(request_.network, request_.overrides);
    write_file_atomically(request_.folder / "command.json",
                          request_.provenance.json().dump(1) + "\n");
    drift_ = recorded_drift(request_);
    prepare();
    const fs::path measurements = request_.folder / "measurements.json";
    const std::string key = key_of(result_, request_);
    result_.reused = !request_.fresh && reuse(result_, measurements, key);
    if (!result_.reused && !result_.interrupted) check_drift();
    if (!result_.reused && !result_.interrupted) {
      run_and_verify();
      if (!result_.interrupted)
        write_measurements(measurements, key_of(result_, request_), measurements_of(result_));
    }
    if (result_.interrupted)
      for (TunedPlan& tuned : result_.plans)
        if (!tuned.measured && tuned.not_run.empty()) tuned.not_run = "interrupted";
    publish_winner();
    adopt_winner();
    journal_.write("end", fmt::format("ended: {}", result_.interrupted ? "interrupted" : "done"),
                   {{"interrupted", result_.interrupted}, {"reused", result_.reused}});
    return std::move(result_);
  }

 private:
  /// Plans, with the measurements that the decision needs, and chooses the runs.
  void prepare() {
    if (request_.thorough) {
      PlannedOnMeasurements planned = plan_and_measure(
          result_.network, request_.network, planning_options(request_), measuring_, drift_, log_);
      result_.machine = std::move(planned.machine);
      result_.planning = std::move(planned.planning);
      result_.ended = "everything that the plans need is measured";
    } else {
      measure_what_decides();
    }
    result_.plans = plans_to_run(result_.planning, request_.folder);
    if (!request_.thorough && !request_.all) leave_out_others(result_.plans, result_.planning);
    write_plans(result_, request_);
  }

  void run_and_verify() {
    Race race(request_, log_, journal_);
    const Seconds until = request_.thorough ? Seconds{std::numeric_limits<double>::infinity()}
                                            : request_.time_limit - verifying();
    result_.interrupted = race.run(result_.plans, until);
    if (result_.interrupted) return;
    std::vector<TunedPlan*> verified;
    for (TunedPlan& tuned : result_.plans)
      if (request_.thorough || request_.all || &tuned == &result_.winner())
        verified.push_back(&tuned);
    result_.interrupted = race.verify(result_.network, verified);
  }

  /// About how long the comparison with an undivided run takes: two starts, and a few steps with
  /// all samples on one rank.
  Seconds verifying() const {
    constexpr Seconds starts{4};
    constexpr double steps = 4, most_of_limit = 0.2;
    const Plan& plan = result_.planning.recommended;
    return std::min(starts + plan.prediction->step * (steps * plan.ranks),
                    request_.time_limit * most_of_limit);
  }

  /// Puts the plan to use, and its timings, at the top of the results folder: the fastest measured
  /// one if it beat the recommended plan beyond noise, else the recommended one.
  void publish_winner() {
    const TunedPlan& winner = result_.winner();
    for (const char* name : {"plan.json", "timings.json"}) {
      const fs::path from = winner.folder / name, to = request_.folder / name;
      if (fs::exists(from))
        write_file_atomically(to, read_text(from.string()));
      else
        fs::remove(to);
    }
  }

  /// Lets `plan` answer with the winner from now on, if another plan than the recommended one won.
  void adopt_winner() const {
    const TunedPlan &winner = result_.winner(), &recommended = result_.plans.front();
    if (!recommended.measured) return;
    std::optional<Adopted> adopted;
    if (&winner != &recommended)
      adopted = {*winner.plan, winner.name, winner.measured->median, recommended.measured->median};
    adopt(result_.network, request_.ranks, adopted, request_.provenance);
  }

  /// If the machine is slower or faster than when it was measured, plans again with that.
  void check_drift() {
    log_.phase("checking whether the machine has drifted since it was measured");
    std::optional<Drift> drift = drift_;
    unless_stopped(
        [&] { drift = measuring_.find_drift(result_.network, result_.planning.recommended); });
    if (drift == drift_) return;
    drift_ = drift;
    prepare();
  }

  /// Does a part of the work. If the user stops it, the result so far is the answer.
  void unless_stopped(const std::function<void()>& work) {
    try {
      work();
      if (!stop_requested()) return;
    } catch (const Stopped&) {
    } catch (const JobFailed&) {
      if (!stop_requested() && !measuring_.interrupted()) throw;
    }
    result_.interrupted = true;
    result_.ended = "interrupted";
  }

  // ---------------------------------------------------------------- measuring what decides

  void measure_what_decides() {
    unless_stopped([this] {
      plan_now();
      if (stop_requested()) throw Stopped{};
      log_.phase("a quick look at the machine");
      if (measuring_.look_quickly(result_.network, quick_plans())) {
        journal_.write("measured", "measured links, and kernels of each family", Json::object());
        plan_now();
      }
      while (measure_next()) plan_now();
    });
    journal_.write("decided", "measuring ended: " + result_.ended, {{"why", result_.ended}});
  }

  /// Plans on what is known, and says what is best so far.
  void plan_now() {
    log_.phase(
        fmt::format("planning {} for {}", result_.network.name, counted(request_.ranks, "rank")));
    result_.machine = measuring_.known();
    result_.machine.unmeasured_workspace = measuring_.workspace();
    result_.machine.drift = drift_;
    result_.planning = plan(result_.network, request_.network, request_.ranks, result_.machine,
                            planning_options(request_));
    const Plan& best = result_.planning.recommended;
    const Range range =
        range_of(best.prediction->step.value, deviation_of(best.prediction->errors));
    const std::string text = fmt::format("best so far: {}, {} ms, {}-{}", result_.planning.chosen,
                                         milliseconds(best.prediction->step),
                                         milliseconds({range.low}), milliseconds({range.high}));
    if (text != known_best_)
      log_.note(fmt::format("{} (after {})", text, duration(journal_.elapsed())));
    known_best_ = text;
    journal_.write("recommendation", text,
                   {{"plan", result_.planning.chosen},
                    {"predicted_step_seconds", best.prediction->step.value},
                    {"predicted_step_seconds_range", to_json(range)}});
  }

  /// The plans whose kernels stand for all others at first.
  std::vector<const Plan*> quick_plans() const {
    std::vector<const Plan*> plans{&result_.planning.recommended, &*fastest(result_.planning).plan};
    for (const Considered& baseline : result_.planning.baselines)
      if (baseline.usable() && baseline.name == "sample") plans.push_back(&*baseline.plan);
    return plans;
  }

  /// The time that is left to measure, so that there is time for the runs.
  Seconds left() const {
    constexpr double share_of_measuring = 0.5;
    return request_.time_limit * share_of_measuring - journal_.elapsed();
  }

  /// Measures the next batch of kernels. Returns false if there is nothing to measure, or no time.
  bool measure_next() {
    constexpr Seconds batch_time{10};
    if (stop_requested()) throw Stopped{};
    const Considered& best = fastest(result_.planning);
    const std::vector<const Considered*> rivals = rivals_of(result_.planning);
    std::vector<const Plan*> plans{&*best.plan};
    for (const Considered* rival : rivals) plans.push_back(&*rival->plan);
    const std::vector<Kernel> missing = measuring_.missing_kernels(result_.network, plans);
    const std::vector<OpenKernel> open =
        open_kernels(*best.plan->prediction, rivals, missing, result_.machine, pace_);
    for (const bool for_range : {false, true}) {
      const std::vector<OpenKernel> batch =
          next_batch(open, std::min(batch_time, left()), for_range);
      if (batch.empty() || left().value <= 0) continue;
      measure(batch, rivals, for_range);
      return true;
    }
    result_.ended = left().value <= 0 ? "the rest of the time is for runs"
                    : rivals.empty()  ? "no other plan may still win"
                                      : "all that decides is measured";
    return false;
  }

  void measure(const std::vector<OpenKernel>& batch, const std::vector<const Considered*>& rivals,
               bool for_range) {
    std::vector<Kernel> kernels;
    Seconds predicted{};
    Json names = Json::array();
    for (const OpenKernel& one : batch) {
      kernels.push_back(one.kernel);
      predicted += cost_of(one.kernel, result_.machine).seconds;
      names.push_back(one.kernel.key());
    }
    const std::string why =
        for_range ? fmt::format("for the range of {}", fastest(result_.planning).name)
                  : fmt::format("to decide between {} and {}", fastest(result_.planning).name,
                                rivals.size() == 1 ? rivals.front()->name
                                                   : counted(std::ssize(rivals), "other plan"));
    log_.phase(fmt::format("measuring {}, {}; {} left", counted(std::ssize(kernels), "kernel"), why,
                           duration(request_.time_limit - journal_.elapsed())));
    const Seconds taken = measuring_.measure(kernels);
    pace_.learn(predicted, kernels.size(), taken);
    journal_.write("measured",
                   fmt::format("measured {} in {}, {}", counted(std::ssize(kernels), "kernel"),
                               duration(taken), why),
                   {{"kernels", names}, {"seconds", taken.value}, {"why", why}});
  }

  struct Stopped {};

  const AutotuneRequest& request_;
  Log& log_;
  Journal journal_;
  Measuring measuring_;
  MeasuringPace pace_;
  AutotuneResult result_;
  std::optional<Drift> drift_;
  std::string known_best_;  ///< what was said last
};

}  // namespace

std::vector<const TunedPlan*> AutotuneResult::faster() const {
  std::vector<const TunedPlan*> result;
  if (!plans.front().measured) return result;
  const Measured& ours = *plans.front().measured;
  for (const TunedPlan& tuned : plans) {
    if (!tuned.measured || tuned.measured->median.value > 0.99 * ours.median.value) continue;
    bool every_round = true;
    const std::size_t rounds = std::min(ours.rounds.size(), tuned.measured->rounds.size());
    for (std::size_t round = 0; round < rounds; ++round)
      every_round = every_round && tuned.measured->rounds[round] < ours.rounds[round];
    if (every_round) result.push_back(&tuned);
  }
  return result;
}

const TunedPlan& AutotuneResult::winner() const {
  const std::vector<const TunedPlan*> better = faster();
  if (better.empty()) return plans.front();
  return **std::ranges::min_element(better, {},
                                    [](const TunedPlan* tuned) { return tuned->measured->median; });
}

AutotuneResult autotune(const AutotuneRequest& request, Log& log) {
  catch_stop_requests();
  return Autotuning(request, log).run();
}

}  // namespace stratplan
