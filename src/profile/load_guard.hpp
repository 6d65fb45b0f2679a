#pragma once
// Whether somebody else used the machine's cores during a measurement: one busy stranger makes medians several times as long.
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
  Seconds elapsed() const { return read_cpu().wall - before_.wall; }
  /// The same on all ranks: the worst host's.
  double foreign() const;

 private:
  const Team& team_;
  CpuReading before_;
};

}  // namespace stratplan
