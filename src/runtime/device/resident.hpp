#pragma once
// How much of this process lies in memory, by the account of the operating system, or of the
// device: what a prediction of memory is held against.
#include <optional>

#include "model/base/units.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// What has been added to the process's resident set since this was made, at its most. Pages count
/// once they were touched; those of ranks that are threads of one process count together. Zero
/// where the system does not tell (it is Linux that does, in /proc/self). Where the backend is a
/// device, what has been added to its memory so far, by whomever: nobody gives any back before he
/// ends.
class ResidentGrowth {
 public:
  /// `backend` must outlive this.
  explicit ResidentGrowth(const Backend& backend);
  Bytes peak() const;

 private:
  const Backend& backend_;
  std::optional<Bytes> device_before_;
  Bytes before_;
};

}  // namespace stratplan
