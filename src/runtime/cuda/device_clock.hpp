#pragma once
// Measures the present clock rate of a device's multiprocessors. A device lowers the rate when it
// draws too much power or gets too hot.
#include <cuda_runtime_api.h>

namespace stratplan {

struct ClockCount;

/// Measures the clock rate with a kernel of one thread, which counts cycles for about a fifth of a
/// millisecond of the device's timer.
class DeviceClock {
 public:
  /// Throws EnvironmentError if device memory runs out.
  DeviceClock();
  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// Returns the rate in cycles per second, or 0 if the timer does not advance. The measurement
  /// begins after all work that is on the stream, and read() waits for its end.
  double read(cudaStream_t stream);

 private:
  ClockCount* count_ = nullptr;  ///< in the device's memory
};

}  // namespace stratplan
