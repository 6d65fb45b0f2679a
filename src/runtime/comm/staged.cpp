#include "runtime/comm/staged.hpp"

#include <algorithm>
#include <numeric>

namespace stratplan {
namespace {

/// Pieces of one call begin at multiples of this, so that sums may use vectors.
constexpr std::int64_t alignment = 64;

Bytes aligned(Bytes bytes) { return {(bytes.value + alignment - 1) / alignment * alignment}; }

Bytes room_for(std::span<const Communicator::Parcel> parcels) {
  Bytes room{};
  for (const auto& parcel : parcels) room += aligned(parcel.bytes);
  return room;
}

/// A piece of a call's memory.
template <class Call>
std::byte* take(Call& call, Bytes bytes) {
  std::byte* place = call.memory.get() + call.taken.value;
  call.taken += aligned(bytes);
  return place;
}

}  // namespace

StagedCommunicator::StagedCommunicator(Communicator& inner, Backend& backend)
    : CommunicatorDecorator(inner), backend_(backend) {}

StagedCommunicator::~StagedCommunicator() = default;

Communicator::Group StagedCommunicator::group(const std::vector<int>& ranks) {
  const Group handle = inner_.group(ranks);
  const auto place = static_cast<std::size_t>(handle);
  indices_.resize(std::max(indices_.size(), place + 1));
  indices_[place] =
      static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  return handle;
}

/// A call with that much host memory, on a track that has been told to wait for the kernels so far.
StagedCommunicator::Call& StagedCommunicator::begin(Track track, Bytes bytes) {
  Calls& of_track = calls(track);
  if (of_track.used == of_track.all.size()) of_track.all.push_back(std::make_unique<Call>());
  Call& call = *of_track.all[of_track.used++];
  call.taken = {};
  call.sends.clear(), call.receives.clear(), call.uploads.clear();
  if (call.capacity < bytes) {
    call.memory.reset();
    call.memory = {static_cast<std::byte*>(backend_.allocate_host(bytes)), Release{&backend_}};
    call.capacity = bytes;
  }
  if (track != Track::Compute)
    backend_.wait(track, of_track.ready = backend_.record(Track::Compute, of_track.ready));
  return call;
}

std::byte* StagedCommunicator::download(Track track, Call& call, const void* device, Bytes bytes) {
  std::byte* host = take(call, bytes);
  if (bytes.value > 0) backend_.download(track, host, device, bytes);
  return host;
}

void StagedCommunicator::upload_later(Call& call, void* device, const std::byte* host,
                                      Bytes bytes) {
  if (bytes.value > 0) call.uploads.push_back({device, host, bytes});
}

void StagedCommunicator::end(Track track) {
  if (!overlap_) synchronize(track);
}

void StagedCommunicator::exchange(Track track, std::span<const Parcel> sends,
                                  std::span<const Parcel> receives, int tag) {
  Call& call = begin(track, room_for(sends) + room_for(receives));
  for (const auto& [peer, device, bytes] : sends)
    call.sends.push_back({peer, download(track, call, device, bytes), bytes});
  for (const auto& [peer, device, bytes] : receives) {
    std::byte* host = take(call, bytes);
    call.receives.push_back({peer, host, bytes});
    upload_later(call, device, host, bytes);
  }
  backend_.synchronize(track);
  inner_.exchange(track, call.sends, call.receives, tag);
  end(track);
}

void StagedCommunicator::all_reduce(Track track, Group group, void* data, std::int64_t count,
                                    DataType type) {
  const Bytes bytes{count * size_of(type)};
  Call& call = begin(track, aligned(bytes));
  std::byte* host = download(track, call, data, bytes);
  upload_later(call, data, host, bytes);
  backend_.synchronize(track);
  inner_.all_reduce(track, group, host, count, type);
  end(track);
}

void StagedCommunicator::reduce_scatter(Track track, Group group, const void* input, void* output,
                                        std::span<const std::int64_t> counts, DataType type) {
  const Bytes whole{total(counts) * size_of(type)}, mine{counts[index_in(group)] * size_of(type)};
  Call& call = begin(track, aligned(whole) + aligned(mine));
  const std::byte* terms = download(track, call, input, whole);
  std::byte* sums = take(call, mine);
  upload_later(call, output, sums, mine);
  backend_.synchronize(track);
  inner_.reduce_scatter(track, group, terms, sums, counts, type);
  end(track);
}

/// In place on the host, whether or not it is on the device.
void StagedCommunicator::all_gather(Track track, Group group, const void* input, void* output,
                                    std::span<const std::int64_t> counts, DataType type) {
  const std::size_t index = index_in(group);
  const Bytes whole{total(counts) * size_of(type)}, mine{counts[index] * size_of(type)};
  Call& call = begin(track, aligned(whole));
  std::byte* host = take(call, whole);
  std::byte* own = host + total(counts.first(index)) * size_of(type);
  if (mine.value > 0) backend_.download(track, own, input, mine);
  upload_later(call, output, host, whole);
  backend_.synchronize(track);
  inner_.all_gather(track, group, own, host, counts, type);
  end(track);
}

void StagedCommunicator::synchronize(Track track) {
  inner_.synchronize(track);
  Calls& of_track = calls(track);
  for (std::size_t i = 0; i < of_track.used; ++i)
    for (const auto& [device, host, bytes] : of_track.all[i]->uploads)
      backend_.upload(track, device, host, bytes);
  of_track.used = 0;
  backend_.synchronize(track);
}

void StagedCommunicator::overlap(bool wanted) {
  overlap_ = wanted;
  inner_.overlap(wanted);
}

bool StagedCommunicator::poll(Track track) {
  if (!inner_.poll(track)) return false;
  if (calls(track).used > 0) synchronize(track);
  return true;
}

}  // namespace stratplan
