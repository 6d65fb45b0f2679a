#include "model/machine/odd_levels.hpp"

#include <fmt/format.h>

namespace stratplan {
namespace {

constexpr Seconds long_latency{1e-3};
constexpr double low_bandwidth = 1e8;

/// Whether `level` is faster than `other` in both bandwidth and latency. A network that only has
/// more bandwidth than a node's own bus is not odd.
bool is_faster(const Level& level, const Level& other) {
  return level.bandwidth_bytes_per_s > other.bandwidth_bytes_per_s && level.latency < other.latency;
}

}  // namespace

std::vector<std::string> odd_levels(const MachineProfile& machine) {
  std::vector<std::string> odd;
  const auto& levels = machine.levels;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto add = [&](const char* key, const std::string& what) {
      odd.push_back(fmt::format("at /levels/{}{}: {}", i, key, what));
    };
    if (levels[i].latency > long_latency)
      add("/latency_seconds",
          fmt::format("a latency of {:g} s is long for a message; 4 us is 4e-6 s",
                      levels[i].latency.value));
    if (levels[i].bandwidth_bytes_per_s < low_bandwidth)
      add("/bandwidth_bytes_per_s",
          fmt::format("a bandwidth of {:g} bytes/s is low for a link; 25 GB/s is 2.5e10 bytes/s",
                      levels[i].bandwidth_bytes_per_s));
    if (i + 1 < levels.size() && is_faster(levels[i], levels[i + 1]))
      add("", fmt::format("{} is faster than {}, the level inside it; expected levels from the "
                          "outermost to the innermost",
                          levels[i].name, levels[i + 1].name));
  }
  return odd;
}

}  // namespace stratplan
