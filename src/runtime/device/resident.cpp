#include "runtime/device/resident.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace stratplan {
namespace {

/// A line of /proc/self/status, "VmRSS:  1234 kB".
Bytes status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == key && file >> kibibytes) return {kibibytes << 10};
  }
  return {0};
}

/// The peak begins anew (proc(5), clear_refs). Where that is not allowed it goes back to the
/// process's beginning, which is no less.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace

ResidentGrowth::ResidentGrowth(const Backend& backend)
    : backend_(backend), device_before_(backend.used_memory()), before_(status("VmRSS:")) {
  forget_peak();
}

Bytes ResidentGrowth::peak() const {
  const Bytes growth =
      device_before_ ? *backend_.used_memory() - *device_before_ : status("VmHWM:") - before_;
  return std::max(growth, Bytes{0});
}

}  // namespace stratplan
