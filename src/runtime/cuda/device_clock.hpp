#pragma once
// How fast the multiprocessors run just now: they go slower when the device takes too much power or
// gets too hot.
#include <cuda_runtime_api.h>

namespace stratplan {

struct ClockCount;

/// Measures by a kernel of one thread that counts cycles for about a fifth of a millisecond of the
/// device's timer.
class DeviceClock {
 public:
  /// Throws EnvironmentError: no memory.
  DeviceClock();
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// Cycles per second, behind what is on the stream, which is waited for; 0 if the timer stands
  /// still.
  double read(cudaStream_t stream);

 private:
  ClockCount* count_ = nullptr;  ///< in the device's memory
};

}  // namespace stratplan
