#include "profile/link_profiler.hpp"

#include <algorithm>

#include "model/partition/interval.hpp"

namespace stratplan {
namespace {

constexpr Bytes arena{128 << 20};

}  // namespace

MessageBuffers::MessageBuffers(Backend& backend, Bytes largest)
    : noise_(backend, false), size_(std::max(largest, arena)), sent_(allocate(backend, size_)), received_(allocate(backend, size_)) {
  noise_.write(sent_.get(), size_);
  noise_.write(received_.get(), size_);
}

std::int64_t MessageBuffers::offset(int run, Bytes bytes) const {
  const std::int64_t stride = (bytes.value + 63) / 64 * 64;
  return run % std::max<std::int64_t>(size_.value / stride, 1) * stride;
}

LinkProfiler::LinkProfiler(Backend& backend, const Team& team, Bytes largest, const StoppingRule& rule)
    : team_(team), rule_(rule), buffers_(backend, largest) {}

Measurement LinkProfiler::one_way(int partner, Bytes bytes) {
  const bool first = team_.rank() < partner;
  Measurement round_trip = measure(bytes, partner < team_.size(), [&](int run) {
    send(partner, first, run, bytes);
    send(partner, !first, run, bytes);
  });
  for (Seconds* value : {&round_trip.median, &round_trip.p10, &round_trip.p90}) *value = *value / 2;
  return round_trip;
}

Measurement LinkProfiler::exchange(std::vector<int> peers, Bytes bytes) {
  std::erase_if(peers, [&](int peer) { return peer >= team_.size(); });
  const Bytes all = bytes * std::max<std::int64_t>(std::ssize(peers), 1);
  std::vector<Communicator::Parcel> out(peers.size()), in(peers.size());
  return measure(all, !peers.empty(), [&](int run) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::int64_t place = bytes.value * static_cast<std::int64_t>(i);
      out[i] = {peers[i], static_cast<std::byte*>(buffers_.sent(run, all)) + place, bytes};
      in[i] = {peers[i], static_cast<std::byte*>(buffers_.received(run, all)) + place, bytes};
    }
    communicator().exchange(Track::Halo, out, in, 0);
  });
}

Measurement LinkProfiler::collective(const CollectiveRequest& request, int stride, Bytes bytes) {
  const int group_size = request.group_size, span = group_size * stride;
  const int first = team_.rank() / span * span + team_.rank() % stride;
  const bool takes_part = team_.rank() / span * span + span <= team_.size();
  std::vector<int> ranks;
  for (int i = 0; i < group_size; ++i) ranks.push_back(first + i * stride);
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

void LinkProfiler::send(int partner, bool mine, int run, Bytes bytes) {
  const Communicator::Parcel parcel{partner, mine ? buffers_.sent(run, bytes) : buffers_.received(run, bytes), bytes};
  const std::span<const Communicator::Parcel> one(&parcel, 1), none;
  communicator().exchange(Track::Halo, mine ? one : none, mine ? none : one, 0);
  communicator().synchronize(Track::Halo);
}

Measurement LinkProfiler::measure(Bytes bytes, bool takes_part, const std::function<void(int run)>& run) {
  const auto pack = [&](int i) {
    if (takes_part) buffers_.pack(i, bytes);
  };
  const auto communicate = [&](int i) {
    if (!takes_part) return;
    run(i);
    communicator().synchronize(Track::Halo);
  };
  return sample(clock_, team_, rule_, takes_part, pack, communicate);
}

}  // namespace stratplan
