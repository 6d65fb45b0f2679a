#include "runtime/comm/staged.hpp"

#include <algorithm>
#include <numeric>

namespace stratplan {
namespace {

/// Alignment in bytes of the pieces of a call's host memory, so that sums can use vector
/// instructions.
constexpr std::int64_t alignment = 64;

Bytes aligned(Bytes bytes) { return {(bytes.value + alignment - 1) / alignment * alignment}; }

Bytes room_for(std::span<const Communicator::Parcel> parcels) {
  Bytes room{};
  for (const auto& parcel : parcels) room += aligned(parcel.bytes);
  return room;
}

/// Returns the next free piece of a call's memory.
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

/// Returns a call with `bytes` bytes of host memory, and makes the stream wait for all kernels
/// enqueued so far.
StagedCommunicator::Call& StagedCommunicator::begin(Stream stream, Bytes bytes) {
  Calls& of_stream = calls(stream);
  if (of_stream.used == of_stream.all.size()) of_stream.all.push_back(std::make_unique<Call>());
  Call& call = *of_stream.all[of_stream.used++];
  call.taken = {};
  call.sends.clear(), call.receives.clear(), call.uploads.clear();
  if (call.capacity < bytes) {
    call.memory.reset();
    call.memory = {static_cast<std::byte*>(backend_.allocate_host(bytes)), Release{&backend_}};
    call.capacity = bytes;
  }
  if (stream != Stream::Compute)
    backend_.wait(stream, of_stream.ready = backend_.record(Stream::Compute, of_stream.ready));
  return call;
}

std::byte* StagedCommunicator::download(Stream stream, Call& call, const void* device,
                                        Bytes bytes) {
  std::byte* host = take(call, bytes);
  if (bytes.value > 0) backend_.download(stream, host, device, bytes);
  return host;
}

void StagedCommunicator::upload_later(Call& call, void* device, const std::byte* host,
                                      Bytes bytes) {
  if (bytes.value > 0) call.uploads.push_back({device, host, bytes});
}

void StagedCommunicator::end(Stream stream) {
  if (!overlap_) synchronize(stream);
}

void StagedCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                                  std::span<const Parcel> receives, int tag) {
  Call& call = begin(stream, room_for(sends) + room_for(receives));
  for (const auto& [peer, device, bytes] : sends)
    call.sends.push_back({peer, download(stream, call, device, bytes), bytes});
  for (const auto& [peer, device, bytes] : receives) {
    std::byte* host = take(call, bytes);
    call.receives.push_back({peer, host, bytes});
    upload_later(call, device, host, bytes);
  }
  backend_.synchronize(stream);
  inner_.exchange(stream, call.sends, call.receives, tag);
  end(stream);
}

void StagedCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                    DataType type) {
  const Bytes bytes{count * size_of(type)};
  Call& call = begin(stream, aligned(bytes));
  std::byte* host = download(stream, call, data, bytes);
  upload_later(call, data, host, bytes);
  backend_.synchronize(stream);
  inner_.all_reduce(stream, group, host, count, type);
  end(stream);
}

void StagedCommunicator::reduce_scatter(Stream stream, Group group, const void* input, void* output,
                                        std::span<const std::int64_t> counts, DataType type) {
  const Bytes whole{total(counts) * size_of(type)}, mine{counts[index_in(group)] * size_of(type)};
  Call& call = begin(stream, aligned(whole) + aligned(mine));
  const std::byte* terms = download(stream, call, input, whole);
  std::byte* sums = take(call, mine);
  upload_later(call, output, sums, mine);
  backend_.synchronize(stream);
  inner_.reduce_scatter(stream, group, terms, sums, counts, type);
  end(stream);
}

/// On the host the all-gather is always in place, even if input and output differ on the device.
void StagedCommunicator::all_gather(Stream stream, Group group, const void* input, void* output,
                                    std::span<const std::int64_t> counts, DataType type) {
  const std::size_t index = index_in(group);
  const Bytes whole{total(counts) * size_of(type)}, mine{counts[index] * size_of(type)};
  Call& call = begin(stream, aligned(whole));
  std::byte* host = take(call, whole);
  std::byte* own = host + total(counts.first(index)) * size_of(type);
  if (mine.value > 0) backend_.download(stream, own, input, mine);
  upload_later(call, output, host, whole);
  backend_.synchronize(stream);
  inner_.all_gather(stream, group, own, host, counts, type);
  end(stream);
}

void StagedCommunicator::synchronize(Stream stream) {
  inner_.synchronize(stream);
  Calls& of_stream = calls(stream);
  for (std::size_t i = 0; i < of_stream.used; ++i)
    for (const auto& [device, host, bytes] : of_stream.all[i]->uploads)
      backend_.upload(stream, device, host, bytes);
  of_stream.used = 0;
  backend_.synchronize(stream);
}

void StagedCommunicator::overlap(bool wanted) {
  overlap_ = wanted;
  inner_.overlap(wanted);
}

bool StagedCommunicator::poll(Stream stream) {
  if (!inner_.poll(stream)) return false;
  if (calls(stream).used > 0) synchronize(stream);
  return true;
}

}  // namespace stratplan
