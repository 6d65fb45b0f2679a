#pragma once
// The memory that this process or its device really uses, as the operating system or the device
// reports it, to compare with the predicted memory.
#include <optional>

#include "model/base/units.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Measures the growth of memory since construction. On a host, peak() returns the peak growth of
/// the process's resident set. Pages count once they were touched, and ranks that are threads of
/// one process count together. The result is zero if the system does not report the resident set
/// (Linux does, in /proc/self). On a device, peak() returns the growth, until the call, of the
/// memory in use by all processes. That is the peak, because processes keep their device memory
/// until they end.
class ResidentGrowth {
 public:
  /// `backend` must outlive this object.
  explicit ResidentGrowth(const Backend& backend);
  Bytes peak() const;

 private:
  const Backend& backend_;
  std::optional<Bytes> device_before_;
  Bytes before_;
};

}  // namespace stratplan
