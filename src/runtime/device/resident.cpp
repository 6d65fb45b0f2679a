#include "runtime/device/resident.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace stratplan {
namespace {

/// Returns the value of line `key` in /proc/self/status, such as "VmRSS:  1234 kB"; 0 if there is
/// no such line.
Bytes status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == key && file >> kibibytes) return {kibibytes << 10};
  }
  return {0};
}

/// Resets the peak of the resident set (proc(5), clear_refs). If that is not allowed, Linux reports
/// the peak since the process began, which is not smaller.
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
