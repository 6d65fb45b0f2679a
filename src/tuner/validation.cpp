#include "tuner/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/statistics.hpp"
#include "model/base/system/cpu_time.hpp"
#include "planner/baselines.hpp"
#include "planner/overlap.hpp"
#include "planner/planner.hpp"
#include "planner/prediction.hpp"
#include "tuner/autotune.hpp"
#include "tuner/measuring.hpp"
#include "tuner/race.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Most turns of planning and measuring; each measures something new.
constexpr int most_plannings = 12;

/// The user stopped a case.
struct CaseInterrupted {};

PlanningOptions planning_options(const ValidationCase& one, const Software& software) {
  PlanningOptions options;
  options.overrides = one.overrides;
  options.execution.precision.activations = one.activations;
  options.execution = as_run_by(software, options.execution);
  options.free.micro_batches = false;
  return options;
}

/// The baseline that the case names.
Plan baseline_of(const ValidationCase& one, const Network& network, const MachineProfile& machine,
                 const Execution& execution) {
  const auto fits = [&](const Plan& plan) {
    return machine.device.memory.value == 0 ||
           peak_memory(plan, network, machine) <= machine.device.memory;
  };
  for (Baseline& baseline : baselines(network, one.ranks, machine, execution, fits)) {
    const bool named =
        baseline.name == one.plan || std::ranges::count(baseline.aliases, one.plan) > 0;
    if (!named) continue;
    if (!baseline.plan) throw InfeasibleError(fmt::format("{}: {}", one.plan, baseline.reason));
    baseline.plan->name = one.plan;
    baseline.plan->network_source = one.network;
    baseline.plan->overrides = one.overrides;
    baseline.plan->network_fingerprint = network.fingerprint();
    return *std::move(baseline.plan);
  }
  throw InputError(one.file, "",
                   fmt::format("case {}: expected \"recommended\", a baseline or a decomposition "
                               "as the plan, found \"{}\"",
                               one.name, one.plan));
}

/// Plans a case on a machine, with the prediction.
Plan planned_on(const ValidationCase& one, const Network& network, const MachineProfile& machine) {
  const PlanningOptions options = planning_options(one, machine.software);
  if (one.plan == "recommended")
    return plan(network, one.network, one.ranks, machine, options).recommended;
  std::optional<Plan> stated = stated_plan(one, network);
  Plan chosen = stated ? *std::move(stated) : baseline_of(one, network, machine, options.execution);
  check_decompositions(machine.software, chosen);
  chosen.execution = options.execution;
  chosen.ranks_offered = one.ranks;
  chosen.machine_name = machine.full_name();
  chosen.machine_fingerprint = machine.fingerprint();
  chosen.software = machine.software.name;
  chosen.prediction = choose_execution(chosen, network, machine, {});
  return chosen;
}

/// Calls `measure`, whose measuring jobs may be interrupted.
template <class Measure>
auto uninterrupted(const Measuring& measuring, Measure measure) {
  try {
    return measure();
  } catch (const JobFailed&) {
    if (measuring.interrupted() || stop_requested()) throw CaseInterrupted{};
    throw;
  }
}

class Validating {
 public:
  Validating(const ValidationRequest& request, Log& log) : request_(request), log_(log) {}

  ValidationResult run() {
    ValidationResult result;
    for (const ValidationCase& one : request_.cases) {
      ++number_;
      try {
        if (!one.local())
          result.cases.push_back(predict_there(one));
        else if (auto done = run_here(one))
          result.cases.push_back(*std::move(done));
        else
          ++result.elsewhere;
      } catch (const CaseInterrupted&) {
        result.interrupted = true;
      } catch (const JobFailed& job) {
        result.cases.push_back(
            failed(one, fmt::format("measuring failed with exit code {}", job.exit_code)));
      } catch (const Error& error) {
        if (stop_requested())
          result.interrupted = true;
        else
          result.cases.push_back(failed(one, error.what()));
      }
      if (result.interrupted) break;
    }
    return result;
  }

 private:
  ValidatedCase failed(const ValidationCase& one, const std::string& why) {
    log_.note(fmt::format("case {}: {}", one.name, why));
    return {.of = one, .failure = why};
  }

  static ValidatedCase predict_there(const ValidationCase& one) {
    ValidatedCase done{one};
    Network network = read_network(one.network, one.overrides);
    done.machine = read_machine(one.machine, one.ranks, 1, read_software(one.software));
    Plan chosen = planned_on(one, network, done.machine);
    done.planned = {std::move(chosen), std::move(network)};
    done.measured.median = *one.measured;
    return done;
  }

  /// What a case's measurements depend on. Predictions are made anew from the profiles that were
  /// measured before each run, so that a change of the model needs no new runs.
  std::string key_of(const ValidationCase& one, const Network& network) const {
    return fingerprint_of(fmt::format("{} {} {} {} {} {}", one.group(), one.plan_text(),
                                      network.fingerprint(), request_.backend, request_.seed,
                                      request_.rounds));
  }

  std::optional<ValidatedCase> kept(const ValidationCase& one, const fs::path& folder,
                                    const std::string& key) const {
    if (request_.fresh && one.link == request_.link) return {};
    const auto rounds = read_measurements(folder / "measurements.json", key);
    if (!rounds) return {};
    for (const auto& [name, round] : *rounds)
      for (const char* file : {"machine.json", "plan.json", "timings.json"})
        if (!fs::exists(folder / name / file)) return {};
    return summary_of(one, folder, *rounds);
  }

  /// Nothing if the case is of another link than this machine's, and no results of it are kept.
  std::optional<ValidatedCase> run_here(const ValidationCase& one) {
    const Network network = read_network(one.network, one.overrides);
    const fs::path folder = request_.folder / one.name;
    const std::string key = key_of(one, network);
    if (auto before = kept(one, folder, key)) return before;
    if (one.link != request_.link) return {};
    if (one.ranks > usable_cores())
      throw EnvironmentError(
          fmt::format("{} ranks on {} cores cannot be timed", one.ranks, usable_cores()));
    if (stop_requested()) throw CaseInterrupted{};
    // Without this file, what is left of earlier rounds is not read. The user's files stay.
    fs::remove(folder / "measurements.json");
    log_.phase(fmt::format("case {} of {}: {}", number_, request_.cases.size(), one.name));
    Measuring measuring(one.ranks, request_.backend, log_);
    const Plan chosen = measured_plan(one, network, measuring);
    Measurements rounds;
    for (int round = 1; round <= request_.rounds; ++round) {
      const std::string name = fmt::format("round-{}", round);
      log_.phase(fmt::format("round {} of {}", round, request_.rounds));
      rounds.emplace(name, run_round(one, network, measuring, chosen, folder / name));
    }
    write_measurements(folder / "measurements.json", key, rounds);
    return summary_of(one, folder, rounds);
  }

  /// Plans and measures until nothing that the plan needs is missing.
  Plan measured_plan(const ValidationCase& one, const Network& network, Measuring& measuring) {
    const auto plan_now = [&] {
      MachineProfile machine = measuring.known();
      machine.unmeasured_workspace = measuring.workspace();
      return planned_on(one, network, machine);
    };
    return uninterrupted(measuring, [&] {
      Plan chosen = plan_now();
      for (int turn = 1; turn < most_plannings && measuring.measure_missing(network, {&chosen});
           ++turn)
        chosen = plan_now();
      measuring.refresh_links(network, chosen);
      return chosen;
    });
  }

  /// Predicts the plan's step on the machine as it is now, with the implementations that are now
  /// the fastest, and then runs the plan.
  Measured run_round(const ValidationCase& one, const Network& network, Measuring& measuring,
                     Plan chosen, const fs::path& folder) {
    const std::optional<Drift> drift =
        uninterrupted(measuring, [&] { return measuring.refresh(network, chosen); });
    MachineProfile machine = measuring.known();
    machine.drift = drift;
    chosen.prediction = choose_execution(chosen, network, machine, {});
    fs::create_directories(folder);
    write_document(folder / "machine.json", "machine", to_json(machine));
    write_document(folder / "plan.json", "plan", to_json(chosen, network, request_.provenance));
    AutotuneRequest as;
    as.network = one.network;
    as.overrides = one.overrides;
    as.ranks = one.ranks;
    as.backend = request_.backend;
    as.seed = request_.seed;
    as.rounds = 1;
    as.least_time = {4};
    as.folder = folder;
    as.provenance = request_.provenance;
    Journal journal(folder / "log", {});
    std::vector<TunedPlan> plans{TunedPlan{one.name, {}, std::move(chosen), {}, {}, folder}};
    Race race(as, log_, journal);
    if (race.run(plans, {std::numeric_limits<double>::infinity()})) throw CaseInterrupted{};
    return *plans.front().measured;
  }

  /// The medians of the rounds' predictions and of their measured steps.
  static ValidatedCase summary_of(const ValidationCase& one, const fs::path& folder,
                                  const Measurements& rounds) {
    std::vector<ValidatedCase> each;
    std::vector<double> medians, p10, p90;
    Measured all;
    for (const auto& [name, round] : rounds) {
      ValidatedCase& done = each.emplace_back(ValidatedCase{one});
      done.planned = read_plan((folder / name / "plan.json").string());
      done.machine = read_machine((folder / name / "machine.json").string());
      done.planned.plan.prediction = predict(done.planned.plan, done.planned.network, done.machine);
      done.timings = folder / name / "timings.json";
      medians.push_back(round.median.value);
      p10.push_back(round.p10.value);
      p90.push_back(round.p90.value);
      all.rounds.push_back(round.median);
      all.samples += round.samples;
      all.foreign_load = std::max(all.foreign_load, round.foreign_load);
      all.repetitions += round.repetitions;
    }
    all.median = {median(medians)};
    all.p10 = {median(p10)};
    all.p90 = {median(p90)};
    std::ranges::sort(each, {}, [](const ValidatedCase& done) { return done.predicted().step; });
    ValidatedCase middle = std::move(each[(each.size() - 1) / 2]);
    middle.measured = std::move(all);
    return middle;
  }

  const ValidationRequest& request_;
  Log& log_;
  std::size_t number_ = 0;  ///< of the case under way
};

}  // namespace

ValidationResult validate(const ValidationRequest& request, Log& log) {
  catch_stop_requests();
  return Validating(request, log).run();
}

}  // namespace stratplan
