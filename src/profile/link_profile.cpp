#include "profile/link_profile.hpp"

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/machine/link_rates.hpp"
#include "profile/measure/link_profiler.hpp"
#include "profile/measure/load_guard.hpp"

namespace stratplan {

SizeTable measure_by_size(Bytes least, Bytes largest, const MeasureSize& measure) {
  SizeTable table;
  for (Bytes bytes = least;; bytes = std::min(bytes * 4, std::max(least, largest))) {
    const Measurement now = measure(bytes);
    if (!table.points.empty()) {
      const auto& [smaller, before] = table.points.back();
      const double growth = now.median / before.median;
      const Bytes between{smaller.value * 2};
      if (between < bytes && (growth < 1 || growth > 1.5 * (bytes / smaller)))
        table.points.emplace_back(between, measure(between));
    }
    table.points.emplace_back(bytes, now);
    if (bytes >= largest || now.median >= slow_message) return table;
  }
}

namespace {

/// Tables reach at least this size, because other plans may send more.
constexpr Bytes usual_largest{4 << 20};
Bytes reach(Bytes wanted) { return std::clamp(wanted, usual_largest, largest_measured); }

}  // namespace

LinkProfile profile_links(const ProfileRequest& request, Backend& backend, const Team& team,
                          const LinkProgress& progress) {
  LinkProfile profile;
  if (team.size() == 1 || (request.largest_message.value == 0 && request.collectives.empty()))
    return profile;
  const int rank = team.rank(), partner = rank ^ 1;
  LinkProfiler profiler(backend, team, largest_measured);
  const auto table = [&](const std::string& what, Bytes least, Bytes largest,
                         const MeasureSize& measure) {
    constexpr int most_attempts = 3;
    auto best = least_disturbed(team, most_attempts, [&](int) {
      if (progress) progress(what);
      return measure_by_size(least, reach(largest), measure);
    });
    profile.foreign_load = std::max(profile.foreign_load, best.foreign);
    return std::move(best.result);
  };
  if (request.largest_message.value > 0) {
    profile.one_way = table("messages one way", {4}, request.largest_message,
                            [&](Bytes bytes) { return profiler.one_way(partner, bytes); });
    profile.both_ways = table("messages both ways", {4}, request.largest_message,
                              [&](Bytes bytes) { return profiler.exchange({partner}, bytes); });
  }
  for (const CollectiveRequest& collective : request.collectives) {
    SP_ASSERT(collective.group_size <= team.size(),
              "the request has a group of {} ranks, but the team has {}", collective.group_size,
              team.size());
    const std::string key = collective_key(collective.op, collective.type, collective.group_size);
    const Bytes least{std::max<std::int64_t>(8, collective.group_size * size_of(collective.type))};
    profile.collectives[key] = table(key, least, collective.largest, [&](Bytes bytes) {
      return profiler.collective(collective, 1, bytes);
    });
  }
  return profile;
}

}  // namespace stratplan
