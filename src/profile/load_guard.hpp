#pragma once
// Whether somebody else used the machine's cores during a measurement: one busy stranger makes medians several times as long.
#include <utility>
#include <vector>

#include "profile/clock.hpp"
#include "profile/team.hpp"

namespace stratplan {

/// Processor time since the machine started, and since this process did.
struct CpuReading {
  Seconds busy{};  ///< all cores, all processes, what a hypervisor took away included
  Seconds own{};   ///< this process, all threads
  Seconds wall{};
};

/// Zero where the system does not tell.
CpuReading read_cpu();
int online_cores();

/// Share of the machine's processor time between two readings that was neither idle nor used by `own` (all ranks' together).
double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores);

/// Above this share of the machine a measurement is worth repeating.
inline constexpr double tolerated_foreign_load = 0.04;

/// Watches one stretch of time on all ranks. Readings advance by hundredths of a second, so stretches below a second or so say little.
class LoadGuard {
 public:
  explicit LoadGuard(const Team& team) : team_(team), before_(read_cpu()) {}
  /// The same on all ranks: the worst host's.
  double foreign() const;

 private:
  const Team& team_;
  CpuReading before_;
};

/// What was measured, and how much others used the machine meanwhile.
template <class Result>
struct Guarded {
  Result result;
  double foreign = 0;
};

/// Calls measure(attempt) until others left the machine alone, at most so many times; the least disturbed attempt counts. Called by all ranks.
template <class Measure>
auto least_disturbed(const Team& team, int attempts, Measure measure) -> Guarded<decltype(measure(0))> {
  const auto attempt_once = [&](int attempt) {
    const LoadGuard guard(team);
    auto result = measure(attempt);
    return Guarded<decltype(measure(0))>{std::move(result), guard.foreign()};
  };
  auto best = attempt_once(0);
  for (int attempt = 1; attempt < attempts && best.foreign > tolerated_foreign_load; ++attempt) {
    auto again = attempt_once(attempt);
    if (again.foreign < best.foreign) best = std::move(again);
  }
  return best;
}

}  // namespace stratplan
