#pragma once
// Records when each op of the timed iterations began and ended.
#include <cstdint>
#include <vector>

#include "model/plan/timeline.hpp"
#include "runtime/device/communicator.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/watch/rank_clock.hpp"

namespace stratplan {

/// Keeps the durations of all timed iterations, and the whole timelines of the latest of them. All
/// memory is allocated at the start.
class StepRecorder {
 public:
  /// Called by all ranks. `iterations`: the number of iterations that add() may add.
  StepRecorder(const Executor& executor, Communicator& communicator, int iterations);
  /// Adds the executor's last iteration. Does nothing if its ops were replayed.
  void add(std::int64_t iteration);
  /// Stores the ops' durations and one whole iteration in `timing`: the one whose time is nearest
  /// to the median of `steps`, which are the times of all added iterations; the last if `steps` is
  /// empty. Called by all ranks.
  void finish(const std::vector<Seconds>& steps, Timing& timing);

 private:
  struct Kept {
    std::int64_t iteration = -1;
    Seconds start{};  ///< on this rank's clock
    std::vector<Span> spans;
  };
  void add_quantiles(double fraction, std::vector<std::vector<Seconds>>& of_ranks);
  RecordedStep record(const Kept& step);

  const Executor& executor_;
  Communicator& communicator_;
  RankClock clock_;
  std::size_t added_ = 0;
  std::vector<Kept> kept_;                      ///< a ring: by number of the addition
  std::vector<std::vector<double>> durations_;  ///< by op, in seconds
};

}  // namespace stratplan
