#pragma once
// What happened in one iteration, step by step: predicted by the simulator or measured by the
// executor, the same type, so that a report can lay one beside the other.
#include <string>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

/// One step on one rank. Times count from the start of the iteration.
struct Span {
  int step = 0;  ///< index in the rank's program
  Seconds start{};
  Seconds end{};  ///< of an exchange or a collective: includes waiting for the others
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;  ///< per rank, in order of start
  Seconds total{};                       ///< the slowest rank's end
};

/// How much of an iteration is captured once and replayed, rather than launched step by step.
struct ReplayCount {
  std::size_t segments = 0;  ///< runs of steps, each of them launched as one
  std::size_t steps = 0, all_steps = 0;
};

/// Measured times of one run: timings.json.
struct Timing {
  std::vector<Seconds>
      steps;  ///< wall time of each training step after warm-up, the slowest rank's
  std::vector<double> losses;  ///< of every step, warm-up included
  /// [rank][step of the program]: median duration over the training steps, or over those that
  /// follow; none if steps were replayed
  std::vector<std::vector<Seconds>> op_medians;
  /// training steps behind all others, in which each step of the program was launched on its own to
  /// be timed; 0: `steps` were
  int launched = 0;
  Seconds median() const;
  Seconds quantile(double fraction) const;
};

}  // namespace stratplan
