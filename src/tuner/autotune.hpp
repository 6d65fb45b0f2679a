#pragma once
// The autotune command, an anytime job. A quick look at the machine gives every kernel an estimate
// with a range. Then it plans and measures in turns: what would most change the decision comes
// first (tuner/deciding.hpp). When no other plan may still win, or the time is up, it runs the
// plans among which runs decide (tuner/race.hpp), and compares the plan to use with an undivided
// run.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "planner/planner.hpp"
#include "tuner/journal.hpp"
#include "tuner/measured.hpp"

namespace stratplan {

struct AutotuneRequest {
  std::string network;
  NetworkOverrides overrides;
  int ranks = 1;
  std::optional<Bytes> memory_limit;
  Precision precision;  ///< of all plans, and of the undivided run
  std::string backend;
  std::uint64_t seed = 1;
  std::filesystem::path folder;  ///< holds all results
  int rounds = 3;           ///< each plan runs once per round, unless it has lost or time is up
  Seconds least_time{2.5};  ///< wanted total of a plan's timed steps in each round
  Seconds time_limit{180};  ///< of the whole job, with planning and runs
  /// measure everything that the best plans and all baselines need, run all, whatever it takes
  bool thorough = false;
  bool all = false;  ///< run and verify all baselines, not only those that may win
  /// run all plans even if the folder holds measurements of the same plans by the same program
  bool fresh = false;
  Provenance provenance;
  EventSink events{};  ///< where events go; empty: nowhere
};

struct TunedPlan {
  std::string name;                  ///< "recommended", or the baseline's name
  std::vector<std::string> aliases;  ///< baselines that are the same plan
  std::optional<Plan> plan;
  std::string not_run;  ///< why the plan was not measured; empty if it was
  std::optional<Measured> measured;
  std::filesystem::path folder;  ///< holds plan.json and timings.json (of the middle round)

  /// Whether the plan's first step was compared with the undivided run's, and differs.
  bool differs() const {
    return measured && measured->verification && !measured->verification->passed;
  }
};

struct AutotuneResult {
  Network network;
  /// the profile that the predictions used; all predictions were made before the first run
  MachineProfile machine;
  PlanningResult planning;
  std::vector<TunedPlan> plans;  ///< the recommended one first
  bool reused = false;           ///< whether the measurements were in the folder already
  bool interrupted = false;      ///< the user stopped the job; a second call goes on
  std::string ended;             ///< why measuring ended: "no other plan may still win"
  /// Returns the plans that were faster than the recommended one in every round that both ran, and
  /// by more than 1 % in the median. Reports name them beside the recommended plan.
  std::vector<const TunedPlan*> faster() const;
  /// The plan to use: of those, the one with the shortest measured step; else the recommended one.
  const TunedPlan& winner() const;
};

/// Writes machine.json, plan.json and timings.json of the recommended plan, a folder for each other
/// plan, and `log`. Throws EnvironmentError before anything is measured if `folder` cannot be
/// written. Passes on exceptions of planning and running. If the user stops the job, the result is
/// the best answer so far.
AutotuneResult autotune(const AutotuneRequest& request, Log& log);

}  // namespace stratplan
