#include "profile/link_profile.hpp"

#include <algorithm>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"
#include "profile/kernel_buffers.hpp"
#include "profile/load_guard.hpp"

namespace stratplan {

SizeTable measure_by_size(Bytes least, Bytes largest, const MeasureSize& measure) {
  SizeTable table;
  for (Bytes bytes = least;; bytes = std::min(bytes * 4, std::max(least, largest))) {
    const Measurement now = measure(bytes);
    if (!table.points.empty()) {
      const auto& [smaller, before] = table.points.back();
      const double growth = now.median / before.median;
      const Bytes between{smaller.value * 2};
      if (between < bytes && (growth < 1 || growth > 1.5 * (bytes / smaller))) table.points.emplace_back(between, measure(between));
    }
    table.points.emplace_back(bytes, now);
    if (bytes >= largest || now.median >= slow_message) return table;
  }
}

namespace {

/// Tables reach at least this far, for other plans send more.
constexpr Bytes usual_largest{4 << 20};
Bytes reach(Bytes wanted) { return std::clamp(wanted, usual_largest, largest_measured); }
constexpr Bytes arena{128 << 20};

/// Messages are quickly measured, unless they are slow.
constexpr StoppingRule link_rule{
    .least_samples = 20, .least_expensive = 2, .most_samples = 2000, .enough = {0.02}, .patience = {0.2}, .precision = 0.02};

/// Send and receive buffers, one pair for each run, one behind the other in two arenas.
class MessageBuffers {
 public:
  MessageBuffers(Backend& backend, Bytes largest)
      : noise_(backend, false), size_(std::max(largest, arena)), sent_(allocate(backend, size_)), received_(allocate(backend, size_)) {
    noise_.write(sent_.get(), size_);
    noise_.write(received_.get(), size_);
  }
  void* sent(int run, Bytes bytes) const { return sent_.get() + offset(run, bytes); }
  void* received(int run, Bytes bytes) const { return received_.get() + offset(run, bytes); }
  void pack(int run, Bytes bytes) const { noise_.write(sent(run, bytes), bytes); }

 private:
  std::int64_t offset(int run, Bytes bytes) const {
    const std::int64_t stride = (bytes.value + 63) / 64 * 64;
    return run % std::max<std::int64_t>(size_.value / stride, 1) * stride;
  }
  Noise noise_;
  Bytes size_;
  DeviceMemory sent_, received_;
};

/// Ranks 2 i and 2 i + 1 talk to each other; of an odd number the last only watches.
struct Pairing {
  int partner;
  bool takes_part, first;
  explicit Pairing(const Team& team) : partner(team.rank() ^ 1), takes_part(partner < team.size()), first(team.rank() % 2 == 0) {}
};

class LinkProfiler {
 public:
  LinkProfiler(Backend& backend, const Team& team, Bytes largest) : team_(team), buffers_(backend, largest) {}

  /// There and back, by two: the time of one message.
  Measurement one_way(Bytes bytes) {
    const Pairing pair(team_);
    Measurement round_trip = measure(bytes, pair.takes_part, [&](int run) {
      send(pair, pair.first, run, bytes);
      send(pair, !pair.first, run, bytes);
    });
    for (Seconds* value : {&round_trip.median, &round_trip.p10, &round_trip.p90}) *value = *value / 2;
    return round_trip;
  }

  Measurement both_ways(Bytes bytes) {
    const Pairing pair(team_);
    return measure(bytes, pair.takes_part, [&](int run) {
      const Communicator::Parcel out{pair.partner, buffers_.sent(run, bytes), bytes}, in{pair.partner, buffers_.received(run, bytes), bytes};
      communicator().exchange(Track::Halo, std::span(&out, 1), std::span(&in, 1), 0);
    });
  }

  Measurement collective(const CollectiveRequest& request, Bytes bytes) {
    const int group_size = request.group_size;
    const int first = team_.rank() / group_size * group_size;
    const bool takes_part = first + group_size <= team_.size();
    std::vector<int> ranks(static_cast<std::size_t>(group_size));
    std::iota(ranks.begin(), ranks.end(), first);
    const Communicator::Group group = takes_part ? communicator().group(ranks) : 0;
    const std::int64_t elements = bytes.value / size_of(request.type);
    std::vector<std::int64_t> counts;
    for (int i = 0; i < group_size; ++i) counts.push_back(block(elements, group_size, i).size());
    return measure(bytes, takes_part, [&](int run) {
      void *sent = buffers_.sent(run, bytes), *received = buffers_.received(run, bytes);
      switch (request.op) {
        case Collective::AllReduce: return communicator().all_reduce(Track::Halo, group, sent, elements, request.type);
        case Collective::ReduceScatter: return communicator().reduce_scatter(Track::Halo, group, sent, received, counts, request.type);
        case Collective::AllGather: return communicator().all_gather(Track::Halo, group, sent, received, counts, request.type);
      }
    });
  }

 private:
  Communicator& communicator() const { return team_.communicator(); }

  void send(const Pairing& pair, bool mine, int run, Bytes bytes) {
    const Communicator::Parcel parcel{pair.partner, mine ? buffers_.sent(run, bytes) : buffers_.received(run, bytes), bytes};
    const std::span<const Communicator::Parcel> one(&parcel, 1), none;
    communicator().exchange(Track::Halo, mine ? one : none, mine ? none : one, 0);
    communicator().synchronize(Track::Halo);
  }

  template <class Run>
  Measurement measure(Bytes bytes, bool takes_part, Run run) {
    const auto pack = [&](int i) {
      if (takes_part) buffers_.pack(i, bytes);
    };
    const auto communicate = [&](int i) {
      if (!takes_part) return;
      run(i);
      communicator().synchronize(Track::Halo);
    };
    return sample(clock_, team_, link_rule, takes_part, pack, communicate);
  }

  const Team& team_;
  MessageBuffers buffers_;
  SteadyClock clock_;
};

}  // namespace

LinkProfile profile_links(const ProfileRequest& request, Backend& backend, const Team& team, const LinkProgress& progress) {
  LinkProfile profile;
  if (team.size() == 1 || (request.largest_message.value == 0 && request.collectives.empty())) return profile;
  LinkProfiler profiler(backend, team, largest_measured);
  const auto table = [&](const std::string& what, Bytes least, Bytes largest, const MeasureSize& measure) {
    constexpr int most_attempts = 3;
    auto best = least_disturbed(team, most_attempts, [&](int) {
      if (progress) progress(what);
      return measure_by_size(least, reach(largest), measure);
    });
    profile.foreign_load = std::max(profile.foreign_load, best.foreign);
    return std::move(best.result);
  };
  if (request.largest_message.value > 0) {
    profile.one_way = table("messages one way", {4}, request.largest_message, [&](Bytes bytes) { return profiler.one_way(bytes); });
    profile.both_ways = table("messages both ways", {4}, request.largest_message, [&](Bytes bytes) { return profiler.both_ways(bytes); });
  }
  for (const CollectiveRequest& collective : request.collectives) {
    SP_ASSERT(collective.group_size <= team.size(), "a group of {} of {} ranks", collective.group_size, team.size());
    const std::string key = collective_key(collective.op, collective.type, collective.group_size);
    const Bytes least{std::max<std::int64_t>(8, collective.group_size * size_of(collective.type))};
    profile.collectives[key] = table(key, least, collective.largest, [&](Bytes bytes) { return profiler.collective(collective, bytes); });
  }
  return profile;
}

}  // namespace stratplan
