#pragma once
// How much of this process lies in memory, by the operating system's own account: what a prediction of memory is held against.
#include "model/base/units.hpp"

namespace stratplan {

/// What has been added to the process's resident set since this was made, at its most. Pages count once they were touched; those of ranks that are threads
/// of one process count together. Zero where the system does not tell (it is Linux that does, in /proc/self).
class ResidentGrowth {
 public:
  ResidentGrowth();
  Bytes peak() const;

 private:
  Bytes before_;
};

}  // namespace stratplan
