#include "profile/measure/link_profiler.hpp"

#include <algorithm>
#include <utility>

#include "model/partition/interval.hpp"

namespace stratplan {
namespace {

constexpr Bytes arena{128 << 20};

}  // namespace

MessageBuffers::MessageBuffers(Backend& backend, Bytes largest)
    : noise_(backend, false),
      size_(std::max(largest, arena)),
      sent_(allocate(backend, size_)),
      received_(allocate(backend, size_)) {
  noise_.write(sent_.get(), size_);
  noise_.write(received_.get(), size_);
}

std::int64_t MessageBuffers::offset(int run, Bytes bytes) const {
  const std::int64_t stride = (bytes.value + 63) / 64 * 64;
  return run % std::max<std::int64_t>(size_.value / stride, 1) * stride;
}

std::vector<int> group_of(int rank, int ranks, int group_size, int stride) {
  const int span = group_size * stride, begin = rank / span * span;
  std::vector<int> group;
  for (int i = 0; i < group_size && begin + span <= ranks; ++i)
    group.push_back(begin + rank % stride + i * stride);
  return group;
}

LinkProfiler::LinkProfiler(Backend& backend, const Team& team, Bytes largest,
                           const StoppingRule& rule, std::function<Seconds()> now)
    : backend_(backend),
      team_(team),
      rule_(rule),
      buffers_(backend, largest),
      clock_{std::move(now)} {}

Measurement LinkProfiler::one_way(int partner, Bytes bytes) {
  const bool first = team_.rank() < partner;
  Measurement time = measure(bytes, partner < team_.size(), [&](Communicator& communicator) -> Run {
    return [&, this](int run) {
      send(communicator, partner, first, run, bytes);
      send(communicator, partner, !first, run, bytes);
    };
  });
  for (Seconds* value : {&time.median, &time.p10, &time.p90}) *value = *value / 2;
  for (auto& [transport, median] : time.others) median = median / 2;
  return time;
}

Measurement LinkProfiler::exchange(std::vector<int> peers, Bytes bytes) {
  std::erase_if(peers, [&](int peer) { return peer >= team_.size(); });
  const Bytes all = bytes * std::max<std::int64_t>(std::ssize(peers), 1);
  std::vector<Communicator::Parcel> out(peers.size()), in(peers.size());
  return measure(all, !peers.empty(), [&](Communicator& communicator) -> Run {
    return [&, this](int run) {
      for (std::size_t i = 0; i < peers.size(); ++i) {
        const std::int64_t place = bytes.value * static_cast<std::int64_t>(i);
        out[i] = {peers[i], static_cast<std::byte*>(buffers_.sent(run, all)) + place, bytes};
        in[i] = {peers[i], static_cast<std::byte*>(buffers_.received(run, all)) + place, bytes};
      }
      communicator.exchange(Stream::Halo, out, in, 0);
    };
  });
}

Measurement LinkProfiler::collective(const CollectiveRequest& request, int stride, Bytes bytes) {
  const std::vector<int> ranks = group_of(team_.rank(), team_.size(), request.group_size, stride);
  const std::int64_t elements = bytes.value / size_of(request.type);
  std::vector<std::int64_t> counts;
  for (int i = 0; i < request.group_size; ++i)
    counts.push_back(block(elements, request.group_size, i).size());
  const bool sums_gradients = request.op == Collective::AllReduce && request.type != DataType::F64;
  const auto along = [&](Communicator& communicator) -> Run {
    return [&, this, group = ranks.empty() ? 0 : communicator.group(ranks)](int run) {
      void *sent = buffers_.sent(run, bytes), *received = buffers_.received(0, bytes);
      switch (request.op) {
        case Collective::AllReduce:
          return communicator.all_reduce(Stream::Halo, group, sent, elements, request.type);
        case Collective::ReduceScatter:
          return communicator.reduce_scatter(Stream::Halo, group, sent, received, counts,
                                             request.type);
        case Collective::AllGather:
          return communicator.all_gather(Stream::Halo, group, sent, received, counts, request.type);
      }
    };
  };
  return measure(bytes, !ranks.empty(), along, sums_gradients ? Written::LongAgo : Written::Now);
}

/// Sends one parcel if `mine`, else receives one. The receiver's answer leaves only after this
/// parcel has arrived.
void LinkProfiler::send(Communicator& communicator, int partner, bool mine, int run, Bytes bytes) {
  const Communicator::Parcel parcel{
      partner, mine ? buffers_.sent(run, bytes) : buffers_.received(run, bytes), bytes};
  const std::span<const Communicator::Parcel> one(&parcel, 1), none;
  communicator.exchange(Stream::Halo, mine ? one : none, mine ? none : one, 0);
}

/// Measures all transports, one after the other.
Measurement LinkProfiler::measure(Bytes bytes, bool takes_part,
                                  const std::function<Run(Communicator&)>& along, Written written) {
  Measurement best;
  std::map<std::string, Seconds> medians;
  for (const auto& [name, communicator] : team_.transports()) {
    Measurement time = measure(communicator, bytes, takes_part, written, along(communicator));
    time.choice = name;
    medians[name] = time.median;
    if (medians.size() == 1 || time.median < best.median) best = std::move(time);
  }
  medians.erase(best.choice);
  best.others = std::move(medians);
  return best;
}

/// Measures one transport. Communication that a device's streams do by themselves is enqueued many
/// times before one wait, as in a program, because starting and waiting take time of their own.
Measurement LinkProfiler::measure(Communicator& communicator, Bytes bytes, bool takes_part,
                                  Written written, const Run& run) {
  const int at_once = communicator.captured() ? backend_.runs_per_timing() : 1;
  const auto pack = [&](int i) {
    if (written == Written::LongAgo) return;
    for (int j = 0; j < at_once && takes_part; ++j) buffers_.pack(i * at_once + j, bytes);
  };
  const auto communicate = [&](int i) {
    if (!takes_part) return;
    for (int j = 0; j < at_once; ++j) run(i * at_once + j);
    communicator.synchronize(Stream::Halo);
  };
  Measurement time = sample(clock_, team_, rule_, takes_part, pack, communicate);
  for (Seconds* value : {&time.median, &time.p10, &time.p90}) *value = *value / at_once;
  return time;
}

}  // namespace stratplan
