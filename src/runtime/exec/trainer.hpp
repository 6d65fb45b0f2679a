#pragma once
// Trains a network. Initializes parameters from the seed, then runs and times iterations of the
// program.
#include <functional>

#include "runtime/exec/executor.hpp"

namespace stratplan {

struct TrainingRun {
  int warmup = 1;  ///< iterations whose time does not count
  int steps = 10;  ///< iterations that are timed, after the warm-up
  /// Called on every rank after each iteration, outside the measured time. The function may
  /// communicate. Iteration 0 is the first iteration of the warm-up.
  std::function<void(std::int64_t iteration, double loss, Seconds elapsed)> after_step{};
  /// The iteration to begin with, which is greater than 0 if an earlier run is continued. The
  /// `warmup` iterations from `first` on are not timed. The last iteration, warmup + steps - 1, is
  /// always timed.
  std::int64_t first = 0;
  /// Called after after_step; returns whether the training ends here. All ranks must return the
  /// same value.
  std::function<bool()> stop{};
};

/// Initializes parameters and state. Weights are normal with variance 2 / Layer::fan_in() (He et
/// al., "Delving deep into rectifiers", ICCV 2015). Scales are 1, slopes 0.25, biases and shifts 0.
/// Optimizer state and running means are 0, running variances 1. Each number depends only on seed,
/// parameter name and global element index, so every decomposition starts from the same numbers.
void initialize_parameters(const Network& network, const Program& program, std::uint64_t seed,
                           Executor& executor);

/// Runs the iterations from `run.first` to warmup + steps - 1. Called by all ranks, which begin
/// each iteration together. All ranks return the same Timing, except that losses are NaN on ranks
/// on which no loss lies. Requires initialized parameters. Throws CommunicationError.
Timing train(Executor& executor, Communicator& communicator, const TrainingRun& run);

/// Times single ops after a training that replayed them. Runs 1 + `iterations` further iterations,
/// from `first` on, in which each op is launched on its own. The first of these iterations is not
/// timed. Adds the ops' median durations to `timing` on every rank. These iterations change the
/// parameters, so results of the training must be saved before this call. Called by all ranks. The
/// executor does not replay ops afterwards.
void time_ops(Executor& executor, Communicator& communicator, std::int64_t first, int iterations,
              Timing& timing);

}  // namespace stratplan
