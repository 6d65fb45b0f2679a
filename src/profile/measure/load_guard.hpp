#pragma once
// Whether somebody else used the machine's cores during a measurement: one busy stranger makes
// medians several times as long. And whether a device kept its clock.
#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/system/cpu_time.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Watches one stretch of time on all ranks. Readings advance by hundredths of a second, so
/// stretches below a second or so say little.
class LoadGuard {
 public:
  explicit LoadGuard(const Team& team) : team_(team), before_(read_cpu()) {}
  /// The same on all ranks: the worst host's.
  double foreign() const;

 private:
  const Team& team_;
  CpuReading before_;
};

/// Whether the device kept its clock during measurements: what gets too hot, or takes too much
/// power, goes slower for a while.
class ClockWatch {
 public:
  ClockWatch(Backend& backend, const Team& team) : backend_(backend), team_(team) {}
  /// Of this rank's device now, which is read; cycles per second, 0 if it does not tell.
  double read();
  /// The least of two readings, relative to the highest of this rank so far; the worst rank's, the
  /// same on all. 1 if there is no telling.
  double share(double before, double after) const;
  double highest() const { return highest_; }

 private:
  Backend& backend_;
  const Team& team_;
  double highest_ = 0;
};

/// Below this share of the highest clock a measurement is worth repeating.
inline constexpr double tolerated_clock_share = 0.9;

/// What was measured, and under which circumstances.
template <class Result>
struct Guarded {
  Result result;
  double foreign = 0;      ///< share of the machine that others used meanwhile
  double clock_share = 1;  ///< as ClockWatch has it
  /// In multiples of what is tolerated.
  double disturbance() const {
    return std::max(foreign / tolerated_foreign_load,
                    (1 - clock_share) / (1 - tolerated_clock_share));
  }
};

/// Calls measure(attempt) until others left the machine alone and the device kept its clock, if one
/// is watched, at most so many times; the least disturbed attempt counts. Called by all ranks.
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
