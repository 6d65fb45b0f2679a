#pragma once
// The main job: plan and measure in turns until the best plans rest on measurements, then run the
// recommended plan and its baselines for real and hold each against an undivided run.
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
  Precision precision;  ///< of all plans, and of the run that they are held against
  std::string backend;
  std::uint64_t seed = 1;
  std::filesystem::path folder;  ///< for everything that it leaves
  int rounds = 3;                ///< in each of which every plan runs once
  Seconds least_time{4};         ///< of timed steps of a plan in each round
  /// run everything even if the folder holds measurements of the very same plans by the very same
  /// program
  bool fresh = false;
  Provenance provenance;
};

struct TunedPlan {
  std::string name;                  ///< "recommended", or the baseline's
  std::vector<std::string> aliases;  ///< baselines that are the same plan
  std::optional<Plan> plan;
  std::string not_run;  ///< why it was not measured; empty if it was
  std::optional<Measured> measured;
  std::filesystem::path folder;  ///< holds plan.json and timings.json (of the middle round)
};

struct AutotuneResult {
  Network network;
  MachineProfile machine;  ///< as the predictions saw it, all of them made before the first run
  PlanningResult planning;
  std::vector<TunedPlan> plans;  ///< the recommended one first
  bool reused = false;           ///< the measurements are those that the folder held already
  /// Baselines that were faster than the recommended plan in every round, and by more than 1 % in
  /// the median: the honest other answer.
  std::vector<const TunedPlan*> faster() const;
};

/// Leaves machine.json, plan.json, timings.json of the recommended plan and a folder for each
/// baseline. Throws EnvironmentError before anything is measured if `folder` cannot be written, and
/// what planning and running throw.
AutotuneResult autotune(const AutotuneRequest& request, Log& log);

}  // namespace stratplan
