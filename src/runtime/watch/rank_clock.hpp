#pragma once
// A rank's clock beside that of rank 0, so that times of several ranks can be drawn on one axis.
#include <functional>

#include "model/base/system/cpu_time.hpp"
#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Turns steady_time() of this rank into that of rank 0. The offset of the two clocks is estimated
/// from messages: rank 0's answer is taken to lie in the middle between question and answer, of the
/// quickest of several questions. It can be wrong by half that time at most. Source: F. Cristian,
/// Probabilistic clock synchronization, Distributed Computing 3, 1989, section 4.
class RankClock {
 public:
  using Now = std::function<Seconds()>;
  /// Called by all ranks. `communicator` connects host memories, and must outlive this object.
  /// `now`: another clock than steady_time(), for tests.
  explicit RankClock(Communicator& communicator, Now now = steady_time);
  /// Estimates the offset once more, so that times between the two estimates are corrected for
  /// clocks that do not run equally fast. Called by all ranks.
  void compare_again();
  /// Returns the steady_time() of rank 0 at this rank's steady_time() `here`.
  Seconds of_first(Seconds here) const;
  /// The most by which the offset can have been wrong, at either estimate.
  Seconds error() const;

 private:
  struct Estimate {
    Seconds at{};  ///< on this rank's clock
    Seconds offset{}, error{};
  };
  Estimate estimate();

  Communicator& communicator_;
  Now now_;
  Estimate before_, after_;
};

}  // namespace stratplan
