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
#include "model/base/system/process.hpp"
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

PlanningOptions planning_options(const ValidationCase& one) {
  PlanningOptions options;
  options.overrides = one.overrides;
  options.free.micro_batches = false;
  return options;
}

/// The baseline that the case names.
Plan baseline_of(const ValidationCase& one, const Network& network, const MachineProfile& machine) {
  const auto fits = [&](const Plan& plan) {
    return machine.device.memory.value == 0 ||
           peak_memory(plan, network, machine) <= machine.device.memory;
  };
  for (Baseline& baseline : baselines(network, one.ranks, machine, {}, fits)) {
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
  if (one.plan == "recommended")
    return plan(network, one.network, one.ranks, machine, planning_options(one)).recommended;
  std::optional<Plan> stated = stated_plan(one, network);
  Plan chosen = stated ? *std::move(stated) : baseline_of(one, network, machine);
  chosen.ranks_offered = one.ranks;
  chosen.machine_name = machine.name;
  chosen.machine_fingerprint = machine.fingerprint();
  chosen.software = machine.software.name;
  chosen.prediction = choose_execution(chosen, network, machine, {});
  return chosen;
}

class Validating {
 public:
  Validating(const ValidationRequest& request, Log& log) : request_(request), log_(log) {}

  ValidationResult run() {
    ValidationResult result;
    for (std::size_t i = 0; i < request_.cases.size(); ++i) {
      const ValidationCase& one = request_.cases[i];
      log_.phase(fmt::format("case {} of {}: {}", i + 1, request_.cases.size(), one.name));
      try {
        result.cases.push_back(one.local() ? run_here(one) : predict(one));
      } catch (const CaseInterrupted&) {
        result.interrupted = true;
        break;
      } catch (const Error& error) {
        if (stop_requested()) {
          result.interrupted = true;
          break;
        }
        ValidatedCase& failed = result.cases.emplace_back(ValidatedCase{one});
        failed.failure = error.what();
        log_.note(fmt::format("case {}: {}", one.name, error.what()));
      }
    }
    return result;
  }

 private:
  static ValidatedCase predict(const ValidationCase& one) {
    ValidatedCase done{one};
    Network network = read_network(one.network, one.overrides);
    done.machine = read_machine(one.machine, one.ranks, 1, read_software(one.software));
    Plan chosen = planned_on(one, network, done.machine);
    done.planned = {std::move(chosen), std::move(network)};
    done.measured.median = *one.measured;
    return done;
  }

  /// What the kept results of a case depend on: the program's file, the case and its network.
  std::string key_of(const ValidationCase& one, const Network& network) const {
    return fingerprint_of(fmt::format("{} {} {} {} {} {}", own_build(), one.group(),
                                      one.plan_text(), network.fingerprint(), request_.seed,
                                      request_.rounds));
  }

  std::optional<ValidatedCase> kept(const ValidationCase& one, const fs::path& folder,
                                    const std::string& key) const {
    if (request_.fresh) return {};
    const auto measurements = read_measurements(folder / "measurements.json", key);
    if (!measurements || !measurements->contains(one.name)) return {};
    ValidatedCase done{one};
    done.planned = read_plan((folder / "plan.json").string());
    done.machine = read_machine((folder / "machine.json").string());
    done.measured = measurements->at(one.name);
    done.timings = folder / "timings.json";
    return done;
  }

  ValidatedCase run_here(const ValidationCase& one) {
    Network network = read_network(one.network, one.overrides);
    const fs::path folder = request_.folder / one.name;
    const std::string key = key_of(one, network);
    if (auto before = kept(one, folder, key)) return *std::move(before);
    if (stop_requested()) throw CaseInterrupted{};
    fs::create_directories(folder);
    fs::remove(folder / "measurements.json");  // nothing of other runs stays beside new files
    ValidatedCase done{one};
    Plan chosen = measured_plan(one, network, done.machine);
    write_document(folder / "machine.json", "machine", to_json(done.machine));
    write_document(folder / "plan.json", "plan", to_json(chosen, network, request_.provenance));
    run_plan(one, chosen, folder, done.measured);
    write_measurements(folder / "measurements.json", key, {{one.name, done.measured}});
    done.planned = {std::move(chosen), std::move(network)};
    done.timings = folder / "timings.json";
    return done;
  }

  /// Plans and measures until nothing that the plan needs is missing. `machine`: gets the profile.
  Plan measured_plan(const ValidationCase& one, const Network& network, MachineProfile& machine) {
    Measuring measuring(one.ranks, request_.backend, log_);
    const auto plan_now = [&](const std::optional<Drift>& drift) {
      machine = measuring.known();
      machine.unmeasured_workspace = measuring.workspace();
      machine.drift = drift;
      return planned_on(one, network, machine);
    };
    try {
      Plan chosen = plan_now({});
      for (int turn = 1; turn < most_plannings && measuring.measure_missing(network, {&chosen});
           ++turn)
        chosen = plan_now({});
      const std::optional<Drift> drift = measuring.find_drift(network, chosen);
      if (one.plan != "recommended") return plan_now(drift);
      // The plan stays the one that was measured.
      machine.drift = drift;
      chosen.prediction = choose_execution(chosen, network, machine, {});
      return chosen;
    } catch (const JobFailed&) {
      if (measuring.interrupted() || stop_requested()) throw CaseInterrupted{};
      throw;
    }
  }

  void run_plan(const ValidationCase& one, const Plan& chosen, const fs::path& folder,
                Measured& measured) {
    AutotuneRequest as;
    as.network = one.network;
    as.overrides = one.overrides;
    as.ranks = one.ranks;
    as.backend = request_.backend;
    as.seed = request_.seed;
    as.rounds = request_.rounds;
    as.folder = folder;
    as.provenance = request_.provenance;
    Journal journal(folder / "log", {});
    std::vector<TunedPlan> plans{TunedPlan{one.name, {}, chosen, {}, {}, folder}};
    Race race(as, log_, journal);
    if (race.run(plans, {std::numeric_limits<double>::infinity()})) throw CaseInterrupted{};
    measured = *plans.front().measured;
  }

  const ValidationRequest& request_;
  Log& log_;
};

}  // namespace

ValidationResult validate(const ValidationRequest& request, Log& log) {
  catch_stop_requests();
  return Validating(request, log).run();
}

}  // namespace stratplan
