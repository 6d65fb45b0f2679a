#pragma once
// Processor time of this process, and the share of the machine that other processes used meanwhile.
// One busy foreign process can make measured medians several times as large.
#include "model/base/units.hpp"

namespace stratplan {

/// Processor times up to one moment. A time that the system does not report is zero.
struct CpuReading {
  Seconds busy{};      ///< used on all cores since the machine started, plus time that a
                       ///< hypervisor took away
  Seconds own{};       ///< used by all threads of this process
  Seconds wall{};      ///< steady_time()
  Seconds children{};  ///< used by children that have ended and were waited for
};
CpuReading read_cpu();

/// Returns the share, from 0 to 1, of the machine's processor time between two readings that was
/// neither idle nor used by the observed processes. `own` is the time that the observed processes
/// used.
double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores);

/// A measurement is worth repeating if its foreign_share() is above this share.
inline constexpr double tolerated_foreign_load = 0.04;

/// The time of a clock of this machine that never goes back. It begins at an unspecified moment.
Seconds steady_time();

/// The number of cores of the machine. Each hardware thread counts as a core.
int online_cores();
/// The number of cores that this process may use. All hardware threads of one core count as one, as
/// in mpirun's slots.
int usable_cores();

}  // namespace stratplan
