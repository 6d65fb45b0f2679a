#pragma once
// The autotune command. It plans and measures in turns until everything that the best plans need is
// measured. It then runs the recommended plan and its baselines, and compares each with an
// undivided run.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/log.hpp"
#include "planner/planner.hpp"
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
  int rounds = 3;                ///< each plan runs once per round
  Seconds least_time{4};         ///< wanted total of a plan's timed steps in each round
  /// run all plans even if the folder holds measurements of the same plans by the same program
  bool fresh = false;
  Provenance provenance;
};

struct TunedPlan {
  std::string name;                  ///< "recommended", or the baseline's name
  std::vector<std::string> aliases;  ///< baselines that are the same plan
  std::optional<Plan> plan;
  std::string not_run;  ///< why the plan was not measured; empty if it was
  std::optional<Measured> measured;
  std::filesystem::path folder;  ///< holds plan.json and timings.json (of the middle round)
};

struct AutotuneResult {
  Network network;
  /// the profile that the predictions used; all predictions were made before the first run
  MachineProfile machine;
  PlanningResult planning;
  std::vector<TunedPlan> plans;  ///< the recommended one first
  bool reused = false;           ///< whether the measurements were in the folder already
  /// Returns the baselines that were faster than the recommended plan in every round, and by more
  /// than 1 % in the median. Reports name them beside the recommended plan.
  std::vector<const TunedPlan*> faster() const;
};

/// Writes machine.json, plan.json and timings.json of the recommended plan, and a folder for each
/// baseline. Throws EnvironmentError before anything is measured if `folder` cannot be written.
/// Passes on exceptions of planning and running.
AutotuneResult autotune(const AutotuneRequest& request, Log& log);

}  // namespace stratplan
