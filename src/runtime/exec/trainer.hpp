#pragma once
// Training: parameters from the seed, then iterations of the program, timed.
#include <functional>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct TrainingRun {
  int warmup = 1;  ///< iterations whose time does not count
  int steps = 10;  ///< iterations that are timed, after the warm-up
  /// Called on every rank after each iteration (0: the first of the warm-up), outside the measured
  /// time; may communicate.
  std::function<void(std::int64_t iteration, double loss, Seconds elapsed)> after_step{};
  /// The iteration to begin with, where an earlier run has left off; it counts among warmup +
  /// steps. The first `warmup` from here are not timed, so far as others remain.
  std::int64_t first = 0;
  /// Asked behind after_step: whether to end here. All ranks must answer alike.
  std::function<bool()> stop{};
};

/// Weights normal with variance 2 / Layer::fan_in() (He et al., "Delving deep into rectifiers",
/// ICCV 2015), scales 1, biases and shifts 0, optimizer state 0: functions of seed, parameter name
/// and global element index, so that every decomposition starts from the same numbers.
void initialize_parameters(const Network& network, const Program& program, std::uint64_t seed,
                           Executor& executor);

/// Runs warmup + steps iterations on all ranks, which start each together; the same Timing on every
/// rank. Requires initialized parameters. Throws CommunicationError.
Timing train(Executor& executor, Communicator& communicator, const TrainingRun& run);

/// Where training replays its steps, their times are those of further iterations behind it, in
/// which each is launched on its own: `iterations` of them, from `first` on, after one that is not
/// timed. They train on, so whatever is to be kept of the training must have been. Adds to `timing`
/// on every rank; called by all. Nothing replays any more then.
void time_ops(Executor& executor, Communicator& communicator, std::int64_t first, int iterations,
              Timing& timing);

}  // namespace stratplan
