#pragma once
// Detects disturbed measurements. A measurement is disturbed if other processes used the machine's
// cores, or if a device lowered its clock. One busy process of another user makes medians several
// times as long.
#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/system/cpu_time.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Watches the load on the hosts of all ranks from construction on. Readings advance by hundredths
/// of a second, so intervals below about a second say little.
class LoadGuard {
 public:
  explicit LoadGuard(const Team& team) : team_(team), before_(read_cpu()) {}
  /// Returns the share of the machine that other processes have used since construction. The result
  /// is the largest share of any host, the same on all ranks. All ranks call this function.
  double foreign() const;

 private:
  const Team& team_;
  CpuReading before_;
};

/// Watches whether the device keeps its clock during measurements. A device that gets too hot, or
/// takes too much power, slows down for a while.
class ClockWatch {
 public:
  ClockWatch(Backend& backend, const Team& team) : backend_(backend), team_(team) {}
  /// Returns the clock rate of this rank's device, in cycles per second, or 0 if the device does
  /// not report its rate.
  double read();
  /// Returns the lower of two readings, relative to this rank's highest reading so far. The result
  /// is the lowest share of any rank, the same on all ranks. It is 1 if the clock is unknown. All
  /// ranks call this function.
  double share(double before, double after) const;
  double highest() const { return highest_; }

 private:
  Backend& backend_;
  const Team& team_;
  double highest_ = 0;
};

/// Below this share of the highest clock a measurement is worth repeating.
inline constexpr double tolerated_clock_share = 0.9;

/// The result of a measurement, and its disturbances.
template <class Result>
struct Guarded {
  Result result;
  double foreign = 0;      ///< share of the machine that other processes used
  double clock_share = 1;  ///< ClockWatch::share()
  /// Returns the disturbance in multiples of the tolerated disturbance.
  double disturbance() const {
    return std::max(foreign / tolerated_foreign_load,
                    (1 - clock_share) / (1 - tolerated_clock_share));
  }
};

/// Calls measure(attempt) until an attempt is not disturbed, at most `attempts` times. An attempt
/// is disturbed if other processes used the machine, or if the device watched by `watch` lowered
/// its clock. Returns the least disturbed attempt. All ranks call this function.
template <class Measure>
auto least_disturbed(const Team& team, int attempts, Measure measure, ClockWatch* watch = nullptr)
    -> Guarded<decltype(measure(0))> {
  const auto attempt_once = [&](int attempt) {
    const double clock = watch ? watch->read() : 0;
    const LoadGuard guard(team);
    auto result = measure(attempt);
    const double foreign = guard.foreign();
    return Guarded<decltype(measure(0))>{std::move(result), foreign,
                                         watch ? watch->share(clock, watch->read()) : 1};
  };
  auto best = attempt_once(0);
  for (int attempt = 1; attempt < attempts && best.disturbance() > 1; ++attempt) {
    auto again = attempt_once(attempt);
    if (again.disturbance() < best.disturbance()) best = std::move(again);
  }
  return best;
}

}  // namespace stratplan
