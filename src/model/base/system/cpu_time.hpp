#pragma once
// Processor time: what this process used, and how much of the machine others used meanwhile. One
// busy stranger makes medians several times as long.
#include "model/base/units.hpp"

namespace stratplan {

/// Processor time up to one moment. Zero where the system does not tell.
struct CpuReading {
  Seconds busy{};      ///< since the machine started: all cores, all processes, and what a
                       ///< hypervisor took away
  Seconds own{};       ///< of this process, all threads
  Seconds wall{};      ///< of a clock that never goes back
  Seconds children{};  ///< of its children that have ended and were waited for
};
CpuReading read_cpu();

/// Share of the machine's processor time between two readings that was neither idle nor used by
/// `own`, the observed processes together. From 0 to 1.
double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores);

/// Above this share of the machine a measurement is worth repeating.
inline constexpr double tolerated_foreign_load = 0.04;

/// Cores of the machine; hardware threads count.
int online_cores();
/// Cores that this process may use; hardware threads of one core count once, as mpirun counts its
/// slots.
int usable_cores();

}  // namespace stratplan
