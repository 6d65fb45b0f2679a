#include "model/machine/link_rates.hpp"

namespace stratplan {

void describe_link(Level& level, const SizeTable& one_way) {
  const auto& [least, latency] = one_way.points.front();
  const auto& [most, longest] = one_way.points.back();
  level.latency = latency.median;
  if (longest.median > latency.median) {
    level.bandwidth_bytes_per_s =
        static_cast<double>((most - least).value) / (longest.median - latency.median).value;
  } else if (level.bandwidth_bytes_per_s == 0) {
    level.bandwidth_bytes_per_s = static_cast<double>(most.value) / longest.median.value;
  }
}

}  // namespace stratplan
