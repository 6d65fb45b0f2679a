#pragma once
// The memory that this process or its device really uses, as the operating system or the device
// reports it. Predicted memory is compared with it.
#include <optional>

#include "model/base/units.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Measures the growth of memory since construction. On a host it is the peak growth of the
/// process's resident set. Pages count once they were touched, and ranks that are threads of one
/// process count together. Zero if the system does not report it (Linux does, in /proc/self). On a
/// device it is the growth of the memory in use by all processes, measured when peak() is called.
/// That is the peak, because processes keep their device memory until they end.
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
