#pragma once
// Processor time of this process, and the share of the machine that other processes used meanwhile.
// One busy foreign process can make measured medians several times as large.
#include "model/base/units.hpp"

namespace stratplan {

/// Processor times up to one moment. Zero if the system does not tell them.
struct CpuReading {
  Seconds busy{};      ///< all cores and processes since the machine started, plus time that a
                       ///< hypervisor took away
  Seconds own{};       ///< this process, all threads
  Seconds wall{};      ///< a clock that never goes back
  Seconds children{};  ///< children of this process that have ended and were waited for
};
CpuReading read_cpu();

/// Returns the share, from 0 to 1, of the machine's processor time between two readings that was
/// neither idle nor used by the observed processes. `own`: the time that these processes used.
double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores);

/// A measurement is worth repeating if its foreign_share() is above this share.
inline constexpr double tolerated_foreign_load = 0.04;

/// The number of cores of the machine. Each hardware thread counts.
int online_cores();
/// The number of cores that this process may use. Hardware threads of one core count once, as in
/// mpirun's slots.
int usable_cores();

}  // namespace stratplan
