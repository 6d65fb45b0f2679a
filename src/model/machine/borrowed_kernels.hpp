#pragma once
// Kernels that this machine measured with another number of busy ranks. Ranks share memory
// bandwidth and caches, so times differ, mostly by the kind of kernel. Kernels that were measured
// with both numbers of ranks tell by how much.
#include <map>
#include <optional>
#include <string>

#include "model/base/units.hpp"
#include "model/machine/kernel_speeds.hpp"

namespace stratplan {

class BorrowedKernels {
 public:
  /// Mean times by Kernel::key().
  using Times = std::map<std::string, Seconds>;

  /// Adds what another profile of this machine measured. Kernels of earlier calls stay.
  void add(const Times& mine, const Times& theirs);

  struct Estimate {
    Seconds seconds{};
    double deviation = 0;  ///< standard deviation of ln(measured / estimated)
  };
  /// Nothing if no other profile has this kernel.
  std::optional<Estimate> find(const std::string& key) const;

 private:
  std::map<std::string, Estimate> estimates_;  ///< by Kernel::key(), for this number of ranks
};

}  // namespace stratplan
