#pragma once
// The ops of one iteration with their times. The simulator's predictions and the executor's
// measurements share this type, so that a report can compare them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

/// One op on one rank. Times count from the start of the iteration.
struct Span {
  int op = 0;  ///< index in the rank's program
  Seconds start{};
  Seconds end{};  ///< an exchange or a collective ends after its wait for other ranks
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  ///< per rank, in order of start
  Seconds total{};                       ///< end of the slowest rank
};

/// One step of a run, op by op, on the clock of rank 0.
struct RecordedStep {
  std::int64_t iteration = -1;           ///< -1: no step was recorded
  Seconds start{};                       ///< when the first rank began
  std::vector<std::vector<Span>> ranks;  ///< [rank][op of the program]; times count from `start`
  std::vector<Seconds> clock_errors;     ///< by rank: how far its times can be off those of rank 0
};

/// A part of a run.
struct RunPart {
  enum class What : int { Warmup, Step, Checkpoint, LaunchedSteps, Verification };
  What what = What::Step;
  std::int64_t iteration = 0;  ///< the iteration that it is, or that it follows
  Seconds start{}, end{};
};
inline constexpr int run_part_count = static_cast<int>(RunPart::What::Verification) + 1;
std::string_view name_of(RunPart::What what);

/// How much of an iteration is captured once and replayed, instead of launched op by op.
struct ReplayCount {
  std::size_t segments = 0;  ///< number of sequences of ops that are each launched as one
  /// number of ops in the segments, and of ops in the whole program
  std::size_t ops = 0, all_ops = 0;
};

/// The measured times of one run, as in timings.json.
struct Timing {
  std::vector<Seconds>
      steps;  ///< wall time of each training step after warm-up, on the slowest rank
  std::vector<double> losses;  ///< one per step, warm-up included
  /// [rank][op of the program]: the op's median duration over `steps`, or over the `launched` steps
  /// if there are any; empty if ops were replayed in `steps` and none were launched after that
  std::vector<std::vector<Seconds>> op_medians;
  /// as op_medians: the 10th and the 90th percentile of the op's durations; empty in files that do
  /// not state them
  std::vector<std::vector<Seconds>> op_p10{}, op_p90{};
  /// number of extra training steps, after all others, in which each op was launched and timed on
  /// its own; 0 if there were no such steps
  int launched = 0;
  /// a step of median length among the last ones, or one of the `launched` steps
  RecordedStep recorded{};
  Seconds median() const;
  Seconds quantile(double fraction) const;
};

}  // namespace stratplan
